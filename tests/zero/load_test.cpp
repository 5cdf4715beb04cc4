// Each rank reads its slices of a model and no others, whatever the stage.

#include "runtime/comm/thread/thread_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/model/random_source.h"
#include "tests/support/catch.h"
#include "tests/support/ranks.h"
#include "tests/support/toy_gpt2.h"
#include "tests/zero/device_memory.h"

using namespace dstrain;

namespace {

/// Counts the elements that are asked for.
class CountingSource final : public model::ParameterSource {
 public:
  explicit CountingSource(std::span<const model::ParameterSpec> parameters)
      : values_(1, parameters) {}
  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override {
    read_numel_ += static_cast<std::int64_t>(values.size());
    values_.read(spec, begin, values);
  }
  [[nodiscard]] std::int64_t read_numel() const { return read_numel_; }

 private:
  model::RandomSource values_;
  mutable std::int64_t read_numel_ = 0;
};

}  // namespace

TEST_CASE("ShardedStore: each rank loads its slices and no others", "[zero][store]") {
  const int world = GENERATE(1, 2, 4);
  const int stage = GENERATE(0, 1, 2, 3);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(world, stage, static_cast<int>(dtype));
  const model::Model model = test::toy_gpt2(dtype);
  const zero::FlatLayout layout(model, {world, 600});
  auto group = comm::make_thread_group(world);
  std::vector<std::int64_t> read(static_cast<std::size_t>(world));
  test::run_ranks(
      world,
      [&](int rank) {
        CpuStream stream(CpuStream::Mode::inline_on_caller);
        test::DeviceMemory memory;
        const CountingSource source(model.parameters());
        zero::ShardedStore store(
            {layout, *group[static_cast<std::size_t>(rank)], memory.of_store()}, {stage, 0},
            stream);
        store.load({source}, stream);
        read[static_cast<std::size_t>(rank)] = source.read_numel();
      },
      [&] { group.front()->abort(); });
  std::int64_t all = 0;
  std::int64_t share = 0;
  for (const std::int64_t numel : read) all += numel;
  for (const zero::Segment& segment : layout.segments()) share += segment.shard_numel;
  CHECK(all == model.parameter_count());
  for (const std::int64_t numel : read) CHECK(numel <= share);
}
