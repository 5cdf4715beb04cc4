
#include "runtime/checkpoint/catalog.h"
#include "runtime/numeric/philox.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using namespace checkpoint;

void check_ranges(const Checkpoint& opened, const SavedModel& model, std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(uniform_below({.seed = seed, .stream = 7, .index = ++drawn},
                                                   static_cast<std::uint64_t>(bound)));
  };
  for (const StateRecord& state : opened.manifest().states) {
    for (const TensorRecord& tensor : model.tensors) {
      const std::vector<float> all = values_of(model, state.name, tensor.name);
      const std::int64_t numel = tensor.shape.numel();
      for (int draw = 0; draw < 4; ++draw) {
        const std::int64_t begin = draw == 0 ? 0 : below(numel);
        const std::int64_t end = draw == 0 ? numel : begin + below(numel - begin + 1);
        std::vector<float> read(static_cast<std::size_t>(end - begin));
        opened.read(state.name, tensor.name, begin, read);
        CAPTURE(state.name, tensor.name, begin, end);
        CHECK(read == std::vector<float>(all.begin() + begin, all.begin() + end));
      }
    }
  }
}

}  // namespace

TEST_CASE("Checkpoint: any range is what was written however ranks shared it", "[checkpoint]") {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const TempDir output;
    const int world = 1 + static_cast<int>(seed % 5);
    SavedModel model = random_model(seed, world, {1, 7, 64, 300'000, 3, 700'001, 1000});
    model.bf16 = seed % 2 == 1;
    CAPTURE(seed);
    const auto directory = save(output.path(), model);
    CHECK(verify(directory).whole());
    const Checkpoint opened(directory);
    CHECK(opened.manifest().world_size == world);
    CHECK(opened.has_state("weights") == model.bf16);
    CHECK(opened.read_text("latest") == "global_step12");
    check_ranges(opened, model, seed);
  }
}

}  // namespace dstrain::test
