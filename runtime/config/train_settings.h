#pragma once
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/config/data_files.h"
#include "runtime/config/loss_scale_settings.h"
#include "runtime/config/model_statement.h"
#include "runtime/config/optimizer_settings.h"
#include "runtime/config/schedule_settings.h"
#include "runtime/config/state_precision.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::config {

/// Where a part of the training state is stored between uses: the sections offload_optimizer and
/// offload_param of zero_optimization.
struct OffloadSettings {
  enum class Device { none, cpu, nvme };
  Device device = Device::none;
  bool pin_memory = true;         ///< host memory is locked
  bool pin_memory_given = false;  ///< by the user: then report when it cannot be locked
  double ratio = 1;               ///< fraction of the elements stored on `device`
  // With nvme:
  std::string nvme_path{};  ///< a directory
  int buffer_count = 0;
  bool pipeline_read = true;      ///< reads overlap the optimizer's work
  bool pipeline_write = true;     ///< so do writes
  bool updates_early = false;     ///< during backward, before the gradient norm is known
  std::int64_t buffer_numel = 0;  ///< elements of a buffer for parameters
  std::int64_t in_cpu_numel = 0;  ///< elements of the parameters that stay in host memory
};

struct ZeroSettings {
  int stage = 0;
  /// Maximum number of elements whose gradients are collected and reduced together (stages 2 and
  /// 3). 0: a unit's gradients are reduced as soon as they are complete.
  std::int64_t reduce_bucket_numel = 0;
  /// In stage 3, parameters with fewer elements stay whole on every rank ...
  std::int64_t persistence_threshold_numel = 100'000;
  /// ... up to this number of elements in total.
  std::int64_t persistence_total_numel = std::numeric_limits<std::int64_t>::max();
  /// Communication overlaps computing, on a thread of its own.
  bool overlap = false;
  // In stage 3, if communication overlaps, the next unit is gathered while one computes, unless the
  // first limit is 0 ...
  std::int64_t prefetch_numel = 50'000'000;
  /// ... or more elements than this would be gathered at once.
  std::int64_t live_numel = 1'000'000'000;
  /// Parameters are freed after use if their next use is further away than this, counted in
  /// elements to gather.
  std::int64_t reuse_numel = 1'000'000'000;
  std::int64_t sub_group_numel = 1'000'000'000;  ///< maximum elements read from a disk at once
  OffloadSettings offload_optimizer;
  OffloadSettings offload_param;
};

struct ModelSettings {
  std::string directory{};                        ///< --model_name_or_path; empty: random weights
  std::string named_by = "--model_name_or_path";  ///< names the directory in messages
  std::string config{};        ///< --config_name: a preset, a config.json or a directory with one
  std::string overrides{};     ///< --config_overrides and Megatron's size flags, "n_layer=2"
  std::int64_t in_splits = 1;  ///< number of row tiles of each weight of a block
  std::vector<ModelStatement> statements{};  ///< must hold, or set what only training reads
};

struct DataSettings {
  std::vector<DataFile> train_files;       ///< empty: the run does not train
  std::vector<DataFile> validation_files;  ///< empty: nothing is evaluated, or parts of train_files
  std::string questions{};                 ///< file of multiple-choice questions; empty: none
  std::vector<double> split;  ///< weights of three parts of each train file; empty: not split
  std::int64_t max_train_samples = 0;  ///< 0: all
  std::int64_t max_eval_samples = 0;
  std::string tokenizer = "byte";  ///< or a directory
  bool tokenizer_given = false;    ///< by the user; else the model's own counts, if there is one
  std::int64_t block_size = 0;     ///< T; 0: min(1024, the model's positions), like run_clm
  // For an encoder-decoder, whose block_size stays 0 until T is known from its targets.
  std::int64_t source_length = 0;  ///< S; 0: 1024, like run_translation
  std::int64_t target_length = 0;  ///< 0: 128, like run_translation
  bool documents = false;          ///< attention and positions restart at each document
  std::string text_column{};       ///< the key of texts in records; empty: a known layout
  std::optional<std::chrono::year_month_day> chat_date{};  ///< that chat templates write
  std::map<std::string, std::string> role_names{};         ///< names in records, and their roles
  bool packing = true;  ///< several JSON lines records per sample
  bool shuffle = true;
  bool drop_last = false;   ///< drops samples that do not fill an epoch's last global batch
  std::uint64_t seed = 42;  ///< for shuffling
};

/// The origin of each batch size: "file", "flag --batch_size", "default", "derived", or
/// "elasticity" (the section).
struct BatchOrigins {
  std::string train = "derived";
  std::string micro = "derived";
  std::string accumulation = "derived";
};

/// How often something happens in training.
struct Cadence {
  enum class Unit { never, steps, epochs };
  Unit unit = Unit::never;
  std::int64_t steps = 0;  ///< for Unit::steps, at least 1
};

struct OutputSettings {
  std::string directory;
  bool overwrite = false;
  Cadence logging;      ///< in addition to the first and the last step
  std::string profile;  ///< file for the timeline; empty: nothing is recorded
};

/// Of held-out data.
struct EvaluationSettings {
  bool enabled = true;          ///< if there is such data
  Cadence cadence;              ///< in addition to the end
  std::int64_t batch_size = 0;  ///< sequences per rank at a time
  bool tracks_best = false;     ///< keeps the checkpoint with the lowest (or highest) loss ...
  bool greater_is_better = false;
  bool loads_best = false;  ///< ... and uses it as the final model
};

struct CheckpointSettings {
  /// Unit::steps also saves after the last step; never saves only if asked to stop.
  Cadence cadence;
  bool only_better = false;           ///< save after each evaluation that is the best so far
  std::int64_t save_total_limit = 0;  ///< 0: keep all
  /// Where to resume: a checkpoint, a directory that holds some, or "latest" in the output
  /// directory. Empty: start from the beginning.
  std::string resume_from;
  bool ignore_data_skip = false;  ///< restarts the data, which may be different
  bool node_local = false;        ///< each node has an output directory of its own
  bool whole_model = false;  ///< a checkpoint also holds the model as one file, in the run's dtype
};

/// How swap files are read and written.
struct AioSettings {
  Bytes block_size = mebibyte;  ///< most bytes of one operation; a multiple of 4096
  int queue_depth = 8;          ///< operations in flight, per thread
  int threads = 1;              ///< intra_op_parallelism
  bool single_submit = false;   ///< each operation is submitted by itself
  bool overlap_events = true;   ///< replace each finished operation at once; else wait for all
};

/// Returns the name of a precision in configurations: "bf16".
constexpr std::string_view precision_name(DType dtype) {
  return dtype == DType::bf16 ? "bf16" : dtype == DType::f16 ? "fp16" : "fp32";
}

/// Everything a training run needs, checked and with every "auto" resolved.
struct TrainSettings {
  ModelSettings model;
  DataSettings data;
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  ZeroSettings zero;
  OutputSettings output;
  EvaluationSettings evaluation;
  CheckpointSettings checkpoint;
  AioSettings aio;
  bool trains = true;                 ///< false: only evaluates the model
  std::int64_t train_batch_size = 0;  ///< sequences per optimizer step over all ranks
  std::int64_t micro_batch_size = 0;  ///< sequences per rank and micro step
  std::int64_t accumulation_steps = 1;
  BatchOrigins batch_origins{};
  std::int64_t steps = 0;  ///< optimizer steps; 0 also if they depend on data that is not known yet
  double gradient_clipping = 0;  ///< maximum global norm; 0: no clipping
  DType dtype = DType::f32;      ///< of weights and activations: f32, bf16 or f16
  bool tf32 = false;             ///< GPUs multiply f32 by f32 in TF32
  bool tune_matmuls = false;     ///< with the algorithms that are fastest on rank 0
  StatePrecision precision{};    ///< of the other training state
  LossScaleSettings loss_scale;
  bool sums_gradients = false;  ///< sums the ranks' mean losses instead of averaging them
  /// Maximum number of consecutive steps to skip if loss or gradients are not finite; 0: none.
  std::int64_t max_skipped_steps = 0;
  std::uint64_t seed = 42;
  bool gradient_checkpointing = false;
  bool cpu_checkpointing = false;     ///< gradient checkpointing keeps its tensors in host memory
  std::int64_t steps_per_print = 0;   ///< between progress lines; 0: logging_steps
  bool prints_logged_steps = false;   ///< prints these too
  std::string ds_config_text;         ///< as given, for the record
  std::vector<std::string> warnings;  ///< one line each, to be logged once
};

}  // namespace dstrain::config
