#pragma once
#include <cstdint>
#include <limits>
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

/// Where a part of the training state lives between uses: the sections offload_optimizer and
/// offload_param of zero_optimization.
struct OffloadSettings {
  enum class Device { none, cpu, nvme };
  Device device = Device::none;
  bool pin_memory = true;         ///< host memory is locked
  bool pin_memory_given = false;  ///< by the user: say so when it cannot be
  double ratio = 1;               ///< share of the elements for which `device` holds
  // With nvme:
  std::string nvme_path{};  ///< a directory
  int buffer_count = 0;
  bool pipeline_read = true;      ///< while the optimizer works
  bool pipeline_write = true;     ///< likewise
  bool updates_early = false;     ///< beside backward, before the gradients' norm is known
  std::int64_t buffer_numel = 0;  ///< elements of a buffer for parameters
  std::int64_t in_cpu_numel = 0;  ///< elements of the parameters that stay in host memory
};

struct ZeroSettings {
  int stage = 0;
  /// Most elements whose gradients are held back to be reduced together (stages 2 and 3). 0: each
  /// unit's gradients are reduced as soon as they are complete.
  std::int64_t reduce_bucket_numel = 0;
  /// Parameters with fewer elements stay whole on every rank in stage 3.
  std::int64_t persistence_threshold_numel = 100'000;
  /// ... as long as they have no more elements than this in all.
  std::int64_t persistence_total_numel = std::numeric_limits<std::int64_t>::max();
  /// Communication runs beside computing, on a thread of its own.
  bool overlap = false;
  // Stage 3, when communication overlaps: the next unit is gathered while one computes, unless
  // the first limit is 0 ...
  std::int64_t prefetch_numel = 50'000'000;
  /// ... or more elements than this would be gathered at a time.
  std::int64_t live_numel = 1'000'000'000;
  /// What is next used further away than this, counted in elements to gather, is dropped after use.
  std::int64_t reuse_numel = 1'000'000'000;
  std::int64_t sub_group_numel = 1'000'000'000;  ///< most elements that come from a disk at once
  OffloadSettings offload_optimizer;
  OffloadSettings offload_param;
};

struct ModelSettings {
  std::string directory{};                        ///< --model_name_or_path; empty: random weights
  std::string named_by = "--model_name_or_path";  ///< before the directory in messages
  std::string config{};        ///< --config_name: a preset, a config.json or a directory with one
  std::string overrides{};     ///< --config_overrides and Megatron's size flags, "n_layer=2"
  std::int64_t in_splits = 1;  ///< tiles of rows of each weight of a block
  std::vector<ModelStatement> statements{};  ///< must hold, or set what only training reads
};

struct DataSettings {
  std::vector<DataFile> train_files;       ///< empty: the run does not train
  std::vector<DataFile> validation_files;  ///< empty: nothing is evaluated, or parts of train_files
  std::vector<double> split;  ///< three weights of parts of each of train_files; empty: not split
  std::int64_t max_train_samples = 0;  ///< 0: all there are
  std::int64_t max_eval_samples = 0;
  std::string tokenizer = "byte";  ///< or a directory
  bool tokenizer_given = false;    ///< by the user: else the model's own counts, if it has one
  std::int64_t block_size = 0;     ///< T; 0: min(1024, the model's positions), as run_clm
  // Of an encoder-decoder, which has no block_size until T is that of its targets.
  std::int64_t source_length = 0;  ///< S; 0: 1024, as run_translation
  std::int64_t target_length = 0;  ///< 0: 128, likewise
  bool documents = false;          ///< attention and positions begin anew with each document
  bool packing = true;             ///< several records of JSON lines in a sample
  bool shuffle = true;
  bool drop_last = false;   ///< what does not fill the last global batch of an epoch is left out
  std::uint64_t seed = 42;  ///< of shuffling
};

/// Where each size of the batch comes from: "file", "flag --batch_size", "default", "derived", or
/// "elasticity", the section.
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
  Cadence logging;      ///< besides the first and the last step
  std::string profile;  ///< file for the timeline; empty: nothing is recorded
};

/// Of held-out data.
struct EvaluationSettings {
  bool enabled = true;          ///< when there is such data
  Cadence cadence;              ///< besides the end
  std::int64_t batch_size = 0;  ///< sequences per rank at a time
  bool tracks_best = false;     ///< the checkpoint with the lowest loss, or the highest, stays ...
  bool greater_is_better = false;
  bool loads_best = false;  ///< ... and it is the model that comes out.
};

struct CheckpointSettings {
  /// Under Unit::steps also after the last step; never: only when asked to stop.
  Cadence cadence;
  bool only_better = false;           ///< after each evaluation that is the best so far
  std::int64_t save_total_limit = 0;  ///< 0: all are kept
  /// Where to go on from: a checkpoint, a directory that holds some, or "latest" in the output
  /// directory. Empty: from the start.
  std::string resume_from;
  bool ignore_data_skip = false;  ///< the data begin anew there, and may be others
  bool node_local = false;        ///< each node has an output directory of its own
  bool whole_model = false;  ///< a checkpoint also holds the model as one file, in the run's dtype
};

/// How files that memory is offloaded to are read and written.
struct AioSettings {
  Bytes block_size = mebibyte;  ///< most bytes of one operation; a multiple of 4096
  int queue_depth = 8;          ///< operations in flight, per thread
  int threads = 1;              ///< intra_op_parallelism
  bool single_submit = false;   ///< each operation is handed to the kernel by itself
  bool overlap_events = true;   ///< one that ends makes room for the next; else all end first
};

/// What configurations call a precision: "bf16".
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
  bool trains = true;                 ///< false: evaluates the model and is done
  std::int64_t train_batch_size = 0;  ///< sequences per optimizer step over all ranks
  std::int64_t micro_batch_size = 0;  ///< sequences per rank and micro step
  std::int64_t accumulation_steps = 1;
  BatchOrigins batch_origins{};
  std::int64_t steps = 0;  ///< optimizer steps; 0 also where they depend on data not known yet
  double gradient_clipping = 0;  ///< largest global norm; 0: none
  DType dtype = DType::f32;      ///< f32, or bf16 or f16: of weights and activations
  bool tf32 = false;             ///< GPUs multiply f32 by f32 in TF32
  bool tune_matmuls = false;     ///< by the algorithms that are the fastest on rank 0
  StatePrecision precision{};    ///< of what is trained with besides
  LossScaleSettings loss_scale;
  bool sums_gradients = false;  ///< of the ranks' mean losses, which are their mean otherwise
  /// Steps whose loss or gradients are not finite that may be left out in a row; 0: none.
  std::int64_t max_skipped_steps = 0;
  std::uint64_t seed = 42;
  bool gradient_checkpointing = false;
  bool cpu_checkpointing = false;     ///< what gradient checkpointing keeps lies in host memory
  std::int64_t steps_per_print = 0;   ///< of the progress line; 0: as logging_steps
  bool prints_logged_steps = false;   ///< besides those
  std::string ds_config_text;         ///< the configuration as given, for the record
  std::vector<std::string> warnings;  ///< one line each, to be logged once
};

}  // namespace dstrain::config
