// A store whose units compute on a stream of their own: whatever waits for what, is made to.
#include <algorithm>
#include <memory>
#include <numeric>

#include "runtime/comm/thread/thread_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/engine/frame_copies.h"
#include "runtime/model/random_source.h"
#include "runtime/optim/parameter_groups.h"
#include "tests/support/catch.h"
#include "tests/support/collective_watch.h"
#include "tests/support/late_streams.h"
#include "tests/support/ranks.h"
#include "tests/support/store_step.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/toy_gpt2.h"
#include "tests/zero/device_memory.h"

using namespace dstrain;
using model::PartId;
using Late = test::LateStreams::Late;

namespace {

constexpr int world = 2;
constexpr int steps = 3;
constexpr std::int64_t micro_steps = 2;

struct OrderCase {
  int stage = 0;
  std::int64_t splits = 1;
  std::int64_t bucket_numel = 0;
  bool overlap = true;  ///< false: all in line, on one stream
  Late late = Late::neither;
  DType sent = DType::f32;  ///< of gradients
};

struct OrderResult {
  std::vector<float> seen;  ///< all parameters, as each use of a unit or tile has read them
  std::vector<double> norms;
};

/// One rank with a store, and units that only read parameters and write gradients.
class OrderRank {
 public:
  OrderRank(const OrderCase& settings, comm::Communicator& communicator)
      : settings_(settings),
        streams_(settings.late),
        communicator_(communicator),
        watch_(communicator, [this](const std::string&) { streams_.hold_communication(); }),
        model_(test::toy_gpt2(DType::f32, settings.splits)),
        layout_(model_, {world, 200}),
        store_({layout_, communicator_, memory_.of_store(), &groups_},
               {.stage = settings.stage,
                .reduce_bucket_numel = settings.bucket_numel,
                .overlap = {.enabled = settings.overlap, .prefetch_numel = 1'000'000},
                .precision = {.communication = settings.sent}},
               settings.overlap ? Streams(streams_.compute(), streams_.communication())
                                : Streams(inline_)) {
    store_.load({model::RandomSource(1, model_.parameters())}, compute());
  }

  OrderResult run() {
    for (int step = 1; step <= steps; ++step) {
      streams_.begin();
      run_micro_steps(step);
      step_.gather_totals(store_, compute());
      compute().launch([this] { streams_.hold_computing(); });
      step_.update(store_, compute());
      streams_.end();
      streams_.communication().synchronize();
      result_.norms.push_back(step_.gradient_norm(compute()));
    }
    streams_.begin();
    for (int unit = 0; unit < units(); ++unit) forward(unit);
    streams_.end();
    compute().synchronize();
    return std::move(result_);
  }

 private:
  CpuStream& compute() { return settings_.overlap ? streams_.compute() : inline_; }
  [[nodiscard]] int units() const { return static_cast<int>(model_.units.size()); }
  [[nodiscard]] int tiles(int unit) const {
    return static_cast<int>(model_.units[static_cast<std::size_t>(unit)]->spec().tiles.size());
  }
  [[nodiscard]] PartId part_of(int unit) const {
    PartId part{0};
    for (int before = 0; before < unit; ++before) part = next_id(part, 1 + tiles(before));
    return part;
  }
  [[nodiscard]] PartId tile_of(int unit, int tile) const {
    return next_id(part_of(unit), 1 + tile);
  }

  /// What the engine does around units, with parts in its order.
  void run_micro_steps(int step) {
    expected_.clear();
    for (int unit = 0; unit < units() - 1; ++unit) expect(unit, false);
    for (int unit = units() - 1; unit >= 0; --unit) expect(unit, true);
    store_.expect(expected_, micro_steps);
    step_.begin(store_, {.update = {step, 1e-2}});
    for (engine::MicroStep micro{0, micro_steps}; micro.index < micro.count; ++micro.index) {
      store_.begin(micro);
      for (int unit = 0; unit < units() - 1; ++unit) forward(unit);
      for (int unit = units() - 1; unit >= 0; --unit) backward(unit, 100 * step + micro.index);
    }
  }

  void expect(int unit, bool backwards) {
    const auto first = static_cast<std::ptrdiff_t>(expected_.size()) + 1;
    expected_.push_back(part_of(unit));
    for (int tile = 0; tile < tiles(unit); ++tile) expected_.push_back(tile_of(unit, tile));
    if (backwards) std::reverse(expected_.begin() + first, expected_.end());
  }

  void forward(int unit) {
    const PartId part = part_of(unit);
    read(part);
    for (int tile = 0; tile < tiles(unit); ++tile) {
      read(tile_of(unit, tile));
      store_.release(tile_of(unit, tile), compute());
    }
    store_.release(part, compute());
  }

  void backward(int unit, std::int64_t seed) {
    const PartId part = part_of(unit);
    read(part);
    write_gradients(part, seed);
    for (int index = tiles(unit) - 1; index >= 0; --index) {
      const PartId tile = tile_of(unit, index);
      read(tile);
      write_gradients(tile, seed);
      store_.release(tile, compute());
      store_.reduce(tile, compute());
    }
    store_.release(part, compute());
    store_.reduce(part, compute());
  }

  void read(PartId part) {
    const auto views = store_.acquire(part, compute());
    compute().launch([this, values = std::vector(views.begin(), views.end())] {
      streams_.hold_computing();
      for (const TensorView& view : values) {
        if (!view.empty()) test::append_floats(view, result_.seen);
      }
    });
  }

  /// Numbers that depend on rank, step, part and place.
  void write_gradients(PartId part, std::int64_t seed) {
    const auto targets = store_.gradients(part, compute());
    const std::int64_t from = (seed * 1000 + to_int(part)) * world + communicator_.rank();
    compute().launch([this, from, all = std::vector(targets.begin(), targets.end())] {
      streams_.hold_computing();
      std::int64_t number = from * 7919;
      for (const model::GradientTarget& target : all) {
        if (target.values.empty()) continue;  // in tiles
        const std::span<float> values = host_access(target.values).as<float>();
        for (float& value : values) {
          const float drawn = static_cast<float>(++number % 1009) / 1009 - 0.5F;
          value = target.accumulate ? value + drawn : drawn;
        }
      }
    });
  }

  OrderCase settings_;
  test::LateStreams streams_;
  CpuStream inline_{CpuStream::Mode::inline_on_caller};
  test::DeviceMemory memory_;
  comm::Communicator& communicator_;
  test::CollectiveWatch watch_;
  model::Model model_;
  zero::FlatLayout layout_;
  optim::ParameterGroups groups_{rules::Adam::Settings{.weight_decay = 0.1}};
  zero::ShardedStore store_;
  test::StoreStep step_{world};
  std::vector<PartId> expected_;
  OrderResult result_;
};

OrderResult run_order(const OrderCase& settings) {
  auto group = comm::make_thread_group(world);
  OrderResult result;
  test::run_ranks(
      world,
      [&](int rank) {
        OrderRank runner(settings, *group[static_cast<std::size_t>(rank)]);
        OrderResult own = runner.run();
        if (rank == 0) result = std::move(own);
      },
      [&] { group.front()->abort(); });
  return result;
}

}  // namespace

TEST_CASE("Stream order: delayed work changes no bit", "[zero][overlap][order]") {
  OrderCase settings{.stage = GENERATE(0, 1, 2, 3),
                     .splits = GENERATE(1, 3),
                     .bucket_numel = GENERATE(0, 9000),
                     .sent = GENERATE(DType::f32, DType::bf16)};
  settings.overlap = false;
  const OrderResult reference = run_order(settings);
  CHECK(reference.seen.size() > 100'000);
  settings.overlap = true;
  for (const Late late : {Late::neither, Late::computing, Late::communication}) {
    CAPTURE(settings.stage, settings.splits, settings.bucket_numel, static_cast<int>(late));
    settings.late = late;
    const OrderResult result = run_order(settings);
    CHECK((result.seen == reference.seen));
    CHECK(result.norms == reference.norms);
  }
}

TEST_CASE("Stream order: copies of activations keep to computing", "[engine][frame][order]") {
  const Late late = GENERATE(Late::computing, Late::communication);
  constexpr int calls = 6;
  constexpr std::size_t size = 64;
  std::vector<std::vector<std::byte>> host(calls, std::vector<std::byte>(size));
  std::vector<std::vector<std::byte>> device(2, std::vector<std::byte>(size));
  const auto bytes = [](std::vector<std::byte>& memory) {
    return HostView(memory.data(), DType::u8, {size});
  };
  std::vector<std::byte> seen;
  {
    test::LateStreams streams(late);
    CpuStream copying(CpuStream::Mode::worker_thread);
    engine::FrameCopies copies({streams.compute(), streams.compute(), copying, copying}, nullptr);
    streams.begin();
    // Call n writes one of two buffers, which is stored after it, before call n + 2 writes there.
    for (int n = 0; n < calls; ++n) {
      const auto index = static_cast<std::size_t>(n);
      engine::FrameCall call;
      call.stores.push_back({bytes(device[index % 2]), bytes(host[index])});
      copies.begin(call);
      streams.compute().launch([&, n, index] {
        streams.hold_computing();
        std::fill(device[index % 2].begin(), device[index % 2].end(), static_cast<std::byte>(n));
      });
      copies.end(call);
    }
    // Then each call fetches what the next one reads.
    for (int n = calls; n >= 0; --n) {
      engine::FrameCall call;
      const auto next = static_cast<std::size_t>(n - 1);
      if (n > 0) call.fetches.push_back({bytes(host[next]), bytes(device[next % 2])});
      copies.begin(call);
      streams.compute().launch([&, n] {
        streams.hold_computing();
        if (n < calls) seen.push_back(device[static_cast<std::size_t>(n) % 2].back());
      });
      copies.end(call);
    }
    streams.end();
    streams.compute().synchronize();
  }
  CHECK((seen == std::vector<std::byte>{std::byte{5}, std::byte{4}, std::byte{3}, std::byte{2},
                                        std::byte{1}, std::byte{0}}));
}
