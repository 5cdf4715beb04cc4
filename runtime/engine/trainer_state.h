#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/config/train_settings.h"
#include "runtime/engine/best_checkpoint.h"
#include "runtime/engine/overflow_policy.h"
#include "runtime/model/model.h"

namespace dstrain::engine {

/// The mean of the losses of some steps.
struct MeanLoss {
  double sum = 0;
  std::int64_t steps = 0;
  /// Without one that is no number, of a step that was not taken.
  void add(double loss) {
    if (!std::isfinite(loss)) return;
    sum += loss;
    ++steps;
  }
  /// `otherwise` without any.
  [[nodiscard]] double value_or(double otherwise) const {
    return steps > 0 ? sum / static_cast<double>(steps) : otherwise;
  }
};

/// What a run is trained on. What a state of an older version does not say is not compared.
struct TrainingData {
  std::string file;          ///< its name, without the directory; of a mixture all names
  std::int64_t bytes = 0;    ///< of all its files
  std::string digest{};      ///< `data::SampleSource::digest`; empty: the state does not say
  std::int64_t samples = 0;  ///< of one epoch
  std::string mixture{};     ///< what decides which file's sample comes when; empty: one file
  /// What the tokens of text are known by (`data::TextEncoder::identity`); empty: the data are
  /// tokens, or the state does not say.
  std::string text_encoder{};
  std::optional<bool> packing{};  ///< of records; none: there are none, or the state does not say
  /// The weights of --split, of no part without it, and --max_train_samples, 0 without it; none:
  /// the state does not say.
  std::optional<std::vector<double>> split{};
  std::optional<std::int64_t> max_samples{};
};

/// Where the data of a run began anew (--ignore_data_skip).
struct DataStart {
  std::int64_t step = 0;     ///< after which they did; 0: at the start of the run
  std::int64_t samples = 0;  ///< trained on before
  std::int64_t tokens = 0;   ///< in them, those of sources included
};

/// Where a run stands and what it is made of, besides its tensors: trainer_state.json. The order
/// of the samples, the learning rate and all random numbers are functions of what is here.
struct TrainerState {
  std::int64_t global_step = 0;     ///< global batches that were trained on
  std::int64_t updates = 0;         ///< of the parameters: what the schedule counts
  std::int64_t optimizer_step = 0;  ///< updates that the optimizer's states have seen: Adam's t
  OverflowPolicy::State overflow{};
  std::int64_t max_steps = 0;
  std::int64_t logged_step = 0;       ///< the last one that metrics.jsonl tells of; 0: not known
  MeanLoss unlogged_loss{};           ///< of the steps since then
  double epoch = 0;                   ///< passes over the training samples so far
  std::int64_t consumed_samples = 0;  ///< in all
  std::int64_t train_batch_size = 0;
  std::int64_t block_size = 0;     ///< of an encoder-decoder that of its targets
  std::int64_t source_length = 0;  ///< of its sources; 0: there are none
  bool documents = false;          ///< attention and positions begin anew with each
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;       ///< what does not fill an epoch's last batch is left out
  std::uint64_t data_seed = 0;  ///< of shuffling
  TrainingData data;
  DataStart data_start{};
  std::optional<BestCheckpoint> best{};
  bool loads_best = false;  ///< the run's model is the best checkpoint, not the last
  std::string held_out{};   ///< on which it was evaluated: file, bytes and samples
  /// Of its content and how it becomes samples; empty: the state does not say.
  std::string held_out_content{};
  std::string description = "{}";  ///< JSON: model, dtype, ranks; for the record
  /// The norm that gradients are clipped to; 0: they are not; none: the state does not say.
  std::optional<double> gradient_clipping{};
  std::string optimizer = "{}";  ///< JSON: the type and its settings
  std::string scheduler = "{}";  ///< JSON: the schedule of the learning rate
  /// JSON: which algorithms the device's matrix products take, as it wrote it; empty: its own
  /// choice
  std::string matmul_algorithms{};
  std::string client_state = "{}";  ///< JSON of a library's user, kept as it is

  std::vector<std::string> optimizer_states{};  ///< that it goes on from; not saved

  // To say how a batch size comes about. Not saved.
  std::int64_t micro_batch_size = 0;  ///< of each rank
  std::int64_t ranks = 0;
  config::BatchOrigins batch_origins{};
};

/// The state of a run that has not begun.
TrainerState describe_run(const config::TrainSettings& settings,
                          const model::Model& model,
                          int world_size,
                          const TrainingData& data);

/// Whether both runs have one schedule of the learning rate from one base rate, or a state does not
/// say.
bool same_schedule(const TrainerState& one, const TrainerState& other);
/// Of the schedule; 0: the state does not say.
double base_rate(const TrainerState& state);

/// "AdamW"; "another" where an older state does not say.
std::string optimizer_type(const TrainerState& state);

/// Whether held-out losses of both runs can be compared, as far as the states say.
bool same_held_out(const TrainerState& one, const TrainerState& other);

/// What else of the arithmetic changes, as far as the states say: precision, clipping and the
/// optimizer's settings without its rate. "weight_decay 0.1 (was 0)" for each.
std::vector<std::string> rule_changes(const TrainerState& saved, const TrainerState& run);

inline constexpr const char* trainer_state_file = "trainer_state.json";

/// trainer_state.json: a JSON object with a version.
std::string to_text(const TrainerState& state);
/// Members that it does not know are ignored. `path`, and `program` that wrote it, are for
/// messages. Throws Error{input}, and Error{newer_format} for a newer version.
TrainerState parse_trainer_state(std::string_view text,
                                 const std::string& path,
                                 const std::string& program = "another dstrain");
/// That of a checkpoint. Throws likewise.
TrainerState read_trainer_state(const checkpoint::Checkpoint& checkpoint);

}  // namespace dstrain::engine
