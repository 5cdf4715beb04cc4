// Saved on N ranks and loaded on M, at any stage: the same tensors.
#include <map>
#include <numeric>

#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/comm/control/shared_control_group.h"
#include "runtime/comm/thread/thread_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/engine/checkpointer.h"
#include "runtime/engine/resume.h"
#include "runtime/model/random_source.h"
#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/ranks.h"
#include "tests/support/temp_dir.h"
#include "tests/support/toy_gpt2.h"
#include "tests/zero/device_memory.h"
#include "zero/sharded_store.h"

using namespace dstrain;

namespace {

namespace fs = std::filesystem;

struct Place {
  int world = 1;
  int stage = 0;
  DType dtype = DType::f32;
  zero::Offload offload{};
  std::int64_t in_splits = 1;
};

/// Tiles that do not fall on those of another number of ranks.
std::int64_t splits_at(int world) {
  return world % 2 == 0 ? 5 : 1 + world / 2 * 2;
}

/// What a stage can offload, or nothing.
zero::Offload offload_at(int stage, bool wanted) {
  const auto tier = [&](int lowest_stage) {
    return wanted && stage >= lowest_stage ? MemoryTier::host : MemoryTier::device;
  };
  return {.optimizer = tier(1), .optimizer_ratio = 0.6, .parameters = tier(3)};
}

/// Loads a store on every rank, by `load(store, control, model, stream)`, and saves it.
template <class Load>
void load_and_save(const Place& place, const fs::path& output, std::int64_t step, Load&& load) {
  auto group = comm::make_thread_group(place.world);
  auto controls = comm::make_thread_control_groups(place.world);
  test::run_ranks(
      place.world,
      [&](int rank) {
        comm::Communicator& communicator = *group[static_cast<std::size_t>(rank)];
        comm::ControlGroup& control = *controls[static_cast<std::size_t>(rank)];
        CpuStream stream(CpuStream::Mode::inline_on_caller);
        const model::Model model = test::toy_gpt2(place.dtype, place.in_splits);
        test::DeviceMemory memory;
        const zero::FlatLayout layout(model,
                                      {.world = place.world, .persistence_threshold_numel = 100});
        const optim::ParameterGroups groups(rules::Adam::Settings{});
        zero::ShardedStore store({layout, communicator, memory.of_store(), &groups},
                                 {.stage = place.stage, .offload = place.offload}, stream);
        load(store, control, model, stream);
        HostMemory staging;
        std::vector<int> all_ranks(static_cast<std::size_t>(place.world));
        std::iota(all_ranks.begin(), all_ranks.end(), 0);
        engine::Checkpointer checkpointer({model, store, control, all_ranks, staging,
                                           [](const std::string&) {
                                           }},
                                          {.output = output, .ds_config = "{}", .saved_step = 0},
                                          stream);
        engine::TrainerState state;
        state.global_step = step;
        checkpointer.begin(state);
        checkpointer.finish();
        if (checkpointer.saved_step() != step) fail(ErrorCode::io, "{}", checkpointer.failure());
      },
      [&] {
        group.front()->abort();
        controls.front()->abort();
      });
}

std::map<std::string, std::vector<float>> tensors_of(const fs::path& directory) {
  REQUIRE(checkpoint::verify(directory).whole());
  const checkpoint::Checkpoint checkpoint(directory);
  std::map<std::string, std::vector<float>> tensors;
  for (const checkpoint::StateRecord& state : checkpoint.manifest().states) {
    for (const checkpoint::TensorRecord& tensor : checkpoint.manifest().tensors) {
      std::vector<float> values(static_cast<std::size_t>(tensor.shape.numel()));
      checkpoint.read(state.name, tensor.name, 0, values);
      tensors.emplace(state.name + "." + tensor.name, std::move(values));
    }
  }
  return tensors;
}

/// Three states that are all different.
void draw(zero::ShardedStore& store, const model::Model& model, StreamView stream) {
  const model::RandomSource weights(1, model.parameters());
  const model::RandomSource first(2, model.parameters());
  const model::RandomSource second(3, model.parameters());
  const std::vector<const model::ParameterSource*> optimizer{&first, &second};
  store.load({weights, optimizer}, stream);
}

}  // namespace

TEST_CASE("Reshard: changing ranks and stage and offload and tiles keeps the tensors",
          "[engine][checkpoint]") {
  const int before = GENERATE(1, 2, 3, 4);
  const int stage = GENERATE(0, 1, 2, 3);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  CAPTURE(before, stage, dtype);
  const test::TempDir folder;
  load_and_save(
      {before, stage, dtype, offload_at(stage, before != 2), splits_at(before)}, folder.path(), 1,
      [](auto& store, auto&, const auto& model, StreamView stream) { draw(store, model, stream); });
  const auto saved = tensors_of(folder.path() / "checkpoint-1");
  const model::Model model = test::toy_gpt2(dtype);
  REQUIRE(saved.size() == model.parameters().size() * (dtype == DType::f32 ? 3 : 4));
  const model::RandomSource weights(1, model.parameters());
  for (const model::ParameterSpec& spec : model.parameters()) {
    std::vector<float> values(static_cast<std::size_t>(spec.shape.numel()));
    weights.read(spec, 0, values);
    CHECK((saved.at("fp32." + spec.name) == values));
  }
  for (const int after : {1, 2, 3, 4}) {
    const int next_stage = (stage + before + after) % 4;
    const Place place{after, next_stage, dtype, offload_at(next_stage, after % 2 == 0),
                      splits_at(after)};
    CAPTURE(after, place.stage);
    const std::int64_t step = 1 + after;
    load_and_save(place, folder.path(), step,
                  [&](auto& store, auto& control, const auto& own, StreamView stream) {
                    engine::resume({folder.path(), {"checkpoint-1"}, false}, engine::TrainerState(),
                                   {own, store, control}, stream);
                  });
    CHECK((tensors_of(folder.path() / checkpoint::directory_name(step)) == saved));
  }
}
