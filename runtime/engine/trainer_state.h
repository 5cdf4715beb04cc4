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
  /// Ignores a loss that is not finite, of a step that was not taken.
  void add(double loss) {
    if (!std::isfinite(loss)) return;
    sum += loss;
    ++steps;
  }
  /// The mean, or `otherwise` if there are none.
  [[nodiscard]] double value_or(double otherwise) const {
    return steps > 0 ? sum / static_cast<double>(steps) : otherwise;
  }
};

/// The training data of a run. Members that the state of an older version does not have are not
/// compared.
struct TrainingData {
  std::string file;          ///< file name without the directory; all names of a mixture
  std::int64_t bytes = 0;    ///< of all its files
  std::string digest{};      ///< `data::SampleSource::digest`; empty: not known
  std::int64_t samples = 0;  ///< of one epoch
  std::string mixture{};     ///< decides the order of the files' samples; empty: one file
  /// `data::TextEncoder::identity` of the encoder; empty: the data are tokens, or it is not known.
  std::string text_encoder{};
  std::optional<bool> packing{};  ///< of records; none: no records, or not known
  /// `data::describe(RecordOptions)` of records; none: no records, or not known.
  std::optional<std::string> record_options{};
  /// The weights of --split (empty without it) and --max_train_samples (0 without it); none: not
  /// known.
  std::optional<std::vector<double>> split{};
  std::optional<std::int64_t> max_samples{};
};

/// Where the data of a run restarted (--ignore_data_skip).
struct DataStart {
  std::int64_t step = 0;     ///< after which they restarted; 0: at the start of the run
  std::int64_t samples = 0;  ///< trained on before that
  std::int64_t tokens = 0;   ///< in these samples, including those of sources
};

/// The state of a run besides its tensors: trainer_state.json. The order of the samples, the
/// learning rate and all random numbers are functions of it.
struct TrainerState {
  std::int64_t global_step = 0;     ///< global batches trained on
  std::int64_t updates = 0;         ///< of the parameters, as the schedule counts
  std::int64_t optimizer_step = 0;  ///< updates of the optimizer's states: Adam's t
  OverflowPolicy::State overflow{};
  std::int64_t max_steps = 0;
  std::int64_t logged_step = 0;       ///< the last one in metrics.jsonl; 0: not known
  MeanLoss unlogged_loss{};           ///< of the steps since then
  double epoch = 0;                   ///< passes over the training samples so far
  std::int64_t consumed_samples = 0;  ///< in all
  std::int64_t train_batch_size = 0;
  std::int64_t block_size = 0;     ///< for an encoder-decoder, that of its targets
  std::int64_t source_length = 0;  ///< of its sources; 0: it has none
  bool documents = false;          ///< attention and positions restart at each document
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;       ///< an incomplete last batch of an epoch is left out
  std::uint64_t data_seed = 0;  ///< of shuffling
  TrainingData data;
  DataStart data_start{};
  std::optional<BestCheckpoint> best{};
  bool loads_best = false;  ///< the run's model is the best checkpoint, not the last
  std::string held_out{};   ///< the evaluation data: file, bytes and samples
  /// Digest of the held-out content and how it becomes samples; empty: not known.
  std::string held_out_content{};
  std::string description = "{}";  ///< JSON: model, dtype, ranks; for the record
  /// The norm that gradients are clipped to; 0: no clipping; none: not known.
  std::optional<double> gradient_clipping{};
  std::string optimizer = "{}";  ///< JSON: the type and its settings
  std::string scheduler = "{}";  ///< JSON: the schedule of the learning rate
  /// JSON: the matrix product algorithms of the device, as it wrote them; empty: its default
  std::string matmul_algorithms{};
  std::string client_state = "{}";  ///< JSON object of a library's user, kept as it is
  std::string tag{};                ///< its name for the checkpoint; empty: it has none

  std::vector<std::string> optimizer_states{};  ///< that the optimizer resumes from; not saved

  // To explain a batch size. Not saved.
  std::int64_t micro_batch_size = 0;  ///< of each rank
  std::int64_t ranks = 0;
  config::BatchOrigins batch_origins{};
};

/// The state of a run that has not begun.
TrainerState describe_run(const config::TrainSettings& settings,
                          const model::Model& model,
                          int world_size,
                          const TrainingData& data);

/// Makes `run` go on from `saved`: its counts, loss scale, and what a library's user has kept.
void go_on_from(const TrainerState& saved, TrainerState& run);

/// Whether both runs have the same schedule and base rate, or one state does not have them.
bool same_schedule(const TrainerState& one, const TrainerState& other);
/// The base rate of the schedule; 0: not known.
double base_rate(const TrainerState& state);

/// "AdamW"; "another" if an older state does not have it.
std::string optimizer_type(const TrainerState& state);

/// Whether held-out losses of both runs can be compared, as far as the states tell.
bool same_held_out(const TrainerState& one, const TrainerState& other);

/// Other changes of the arithmetic, as far as the states tell: precision, clipping and the
/// optimizer's settings except its rate. One text each: "weight_decay 0.1 (was 0)".
std::vector<std::string> rule_changes(const TrainerState& saved, const TrainerState& run);

inline constexpr const char* trainer_state_file = "trainer_state.json";

/// trainer_state.json: a JSON object with a version.
std::string to_text(const TrainerState& state);
/// Ignores unknown members. `path`, and `program` that wrote it, are for messages. Throws
/// Error{input}, and Error{newer_format} for a newer version.
TrainerState parse_trainer_state(std::string_view text,
                                 const std::string& path,
                                 const std::string& program = "another dstrain");
/// Reads the state of a checkpoint. Throws the same errors.
TrainerState read_trainer_state(const checkpoint::Checkpoint& checkpoint);

}  // namespace dstrain::engine
