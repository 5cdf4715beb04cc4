#include "zero/sharded_store.h"

#include <algorithm>

#include "runtime/comm/thread/thread_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/model/random_source.h"
#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/ranks.h"
#include "tests/support/store_step.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/toy_gpt2.h"
#include "tests/zero/device_memory.h"
#include "zero/memory_plan.h"

using namespace dstrain;

namespace {

struct StoreCase {
  int world = 1;
  int stage = 0;
  DType dtype = DType::f32;
  std::int64_t persistence_threshold = 600;
  int steps = 3;
  bool trains = true;  ///< false: a store that only serves parameters
};

struct StoreResult {
  std::vector<float> weights;  ///< what units see, in the model's order
  std::vector<double> norms;
  std::vector<Bytes> peak;  ///< of rank 0, by MemoryCategory
  std::vector<Bytes> planned;
};

/// Gradients that depend on rank, step and place, but not on the parameters.
void write_gradients(std::span<const model::GradientTarget> targets, std::uint64_t seed) {
  for (const model::GradientTarget& target : targets) {
    const std::span<float> values = host_access(target.values).as<float>();
    const std::vector<float> drawn = test::random_values(target.values.numel(), ++seed);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = target.accumulate ? values[i] + drawn[i] : drawn[i];
    }
  }
}

/// One rank with a store and no engine.
class StoreRank {
 public:
  StoreRank(const StoreCase& settings, comm::Communicator& communicator)
      : settings_(settings),
        communicator_(communicator),
        step_(settings.world),
        model_(test::toy_gpt2(settings.dtype)),
        layout_(model_, {settings.world, settings.persistence_threshold}),
        store_({layout_, communicator, memory_.of_store(), settings.trains ? &groups_ : nullptr},
               {settings.stage, 0},
               stream_) {
    store_.load({model::RandomSource(1, model_.parameters())}, stream_);
  }

  StoreResult run() {
    StoreResult result;
    for (int step = 1; step <= settings_.steps; ++step) {
      step_.begin(store_, {.update = {step, 1e-2}});
      for (engine::MicroStep micro{0, 2}; micro.index < micro.count; ++micro.index) {
        run_backward(step, micro);
      }
      step_.gather_totals(store_, stream_);
      result.norms.push_back(step_.gradient_norm(stream_));
      step_.update(store_, stream_);
    }
    collect_weights(result);
    const zero::MemoryPlan plan = zero::plan_memory(layout_, {.stage = settings_.stage});
    for (std::size_t i = 0; i < memory_category_names.size(); ++i) {
      result.peak.push_back(memory_.ledger.peak(static_cast<MemoryCategory>(i)));
      result.planned.push_back(plan.of(static_cast<MemoryCategory>(i)));
    }
    return result;
  }

 private:
  void run_backward(int step, engine::MicroStep micro) {
    store_.begin(micro);
    for (int unit = layout_.parts().size() - 1; unit >= 0; --unit) {
      const model::PartId part{unit};  // no unit has tiles
      const std::int64_t place =
          ((step * micro.count + micro.index) * 100 + unit) * 10 + communicator_.rank();
      write_gradients(store_.gradients(part, stream_), static_cast<std::uint64_t>(100 * place));
      store_.reduce(part, stream_);
    }
  }

  void collect_weights(StoreResult& result) {
    for (const model::PartId part : layout_.parts()) {
      const auto views = store_.acquire(part, stream_);
      const auto unit = static_cast<std::size_t>(to_int(part));
      for (std::size_t i = 0; i < model_.units[unit]->spec().parameters.size(); ++i) {
        test::append_floats(views[i], result.weights);
      }
      store_.release(part, stream_);
    }
  }

  StoreCase settings_;
  comm::Communicator& communicator_;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
  test::DeviceMemory memory_;
  test::StoreStep step_;
  model::Model model_;
  zero::FlatLayout layout_;
  optim::ParameterGroups groups_{rules::Adam::Settings{.weight_decay = 0.1}};
  zero::ShardedStore store_;
};

StoreResult run_store(const StoreCase& settings) {
  auto group = comm::make_thread_group(settings.world);
  StoreResult result;
  test::run_ranks(
      settings.world,
      [&](int rank) {
        StoreRank runner(settings, *group[static_cast<std::size_t>(rank)]);
        StoreResult own = runner.run();
        if (rank == 0) result = std::move(own);
      },
      [&] { group.front()->abort(); });
  return result;
}

std::vector<float> rounded(std::vector<float> values) {
  for (float& value : values) value = to_float(to_bfloat16(value));
  return values;
}

}  // namespace

TEST_CASE("ShardedStore: bf16 parameters are the rounded fp32 ones", "[zero][store]") {
  const int world = GENERATE(1, 2, 3);
  const int stage = GENERATE(0, 1, 2, 3);
  const int steps = GENERATE(0, 1, 4);
  CAPTURE(world, stage, steps);
  StoreCase settings{.world = world, .stage = stage, .steps = steps};
  const StoreResult exact = run_store(settings);
  settings.dtype = DType::bf16;
  const StoreResult half = run_store(settings);
  CHECK((half.weights == rounded(exact.weights)));
  CHECK((half.weights != exact.weights));
  CHECK(half.norms == exact.norms);
}

TEST_CASE("ShardedStore: the tracked peak is the plan", "[zero][store][memory]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  const int world = GENERATE(1, 2, 3);
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(static_cast<int>(dtype), world, stage);
  const StoreResult result = run_store({.world = world, .stage = stage, .dtype = dtype});
  CHECK(result.peak == result.planned);
}

TEST_CASE("ShardedStore: without an optimizer there are no masters", "[zero][store]") {
  const int world = GENERATE(1, 2);
  const int stage = GENERATE(0, 3);
  const StoreCase training{.world = world, .stage = stage, .dtype = DType::bf16, .steps = 0};
  StoreCase serving = training;
  serving.trains = false;
  const StoreResult result = run_store(serving);
  CHECK((result.weights == run_store(training).weights));
  CHECK(result.peak[static_cast<std::size_t>(MemoryCategory::optimizer)] == 0);
  CHECK(result.peak[static_cast<std::size_t>(MemoryCategory::gradients)] == 0);
}
