#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/train_settings.h"
#include "runtime/engine/engine.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/optim/parameter_groups.h"
#include "tests/support/deferred_device.h"
#include "zero/offload.h"
#include "zero/overlap.h"

namespace dstrain::test {

/// A short training run of a toy GPT-2, or of another model, on random tokens below 37 in rows of
/// ten, with ranks as threads.
struct TrainingCase {
  int world = 1;
  int stage = 0;
  DType dtype = DType::f32;
  config::StatePrecision precision{};
  std::int64_t accumulation = 1;
  std::int64_t global_batch = 12;
  std::int64_t persistence_threshold = 200;
  std::int64_t reduce_bucket_numel = 0;
  engine::FrameMode mode = engine::FrameMode::training;
  std::int64_t layers = 2;
  double clipping = 1.0;
  double learning_rate = 1e-2;
  float dropout = 0;
  std::int64_t in_splits = 1;  ///< tiles of each weight of a block
  int steps = 3;
  double loss_scale = 1;
  int overflowing_step = 0;  ///< whose loss is scaled beyond what halves hold; it is not taken
  int missing_step = 0;      ///< is not run
  bool evaluates = false;    ///< before and after the steps
  bool reloads = false;      ///< after the first step: saves, spoils and loads all states
  zero::Overlap overlap{};
  zero::Offload offload{};
  std::string nvme_path{};
  /// Of all parameters, by name; none: AdamW that decays by 0.1 for all.
  std::function<optim::ParameterGroups(const std::vector<std::string>& names)> groups{};
  /// Runs on a deferred device of that seed, each rank on one of its own.
  std::optional<std::uint64_t> deferred{};
  DeferredDevice::Wait dropped_wait{};  ///< of rank 0's device in the steps; without a name: none
  int late_ms = 0;                      ///< what that waits for
  /// Called before each collective of a rank, on the thread that runs it; may throw.
  std::function<void(int rank, const std::string& operation)> watch{};
  std::function<model::Model(const model::UnitOptions&)> model{};  ///< none: the toy GPT-2
};

struct TrainingResult {
  std::vector<double> losses;
  std::vector<double> norms;
  std::vector<bool> taken;
  std::optional<std::string> not_finite;  ///< of the last step, if that was not taken
  std::vector<float> weights;             ///< all parameters in the order of Model::parts()
  std::map<std::string, std::vector<float>> parameters;  ///< the same, by name
  bool ranks_agree = true;                               ///< on the weights
  std::vector<Bytes> peak;  ///< of rank 0 on the device, by MemoryCategory
  std::vector<Bytes> planned;
  Bytes disk_peak = 0;
  Bytes disk_planned = 0;
  Bytes host_peak = 0;
  Bytes host_planned = 0;                   ///< pinned or not, without what a save takes
  Bytes host_activations = 0;               ///< the peak of these alone
  std::vector<DeferredDevice::Wait> waits;  ///< of the deferred device in the steps
  std::vector<double> held_out_losses;      ///< empty unless the case evaluates
};

/// Runs the case and returns what rank 0 saw.
TrainingResult run_training(const TrainingCase& settings);

/// That what each tier has held is what was planned.
void check_planned(const TrainingResult& result);

/// Of losses, norms and weights.
void check_same_bits(const TrainingResult& a, const TrainingResult& b);

}  // namespace dstrain::test
