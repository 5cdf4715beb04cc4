#include <array>
#include <cmath>
#include <limits>

#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/philox.h"
#include "tests/comm/conformance.h"
#include "tests/comm/reference.h"
#include "tests/comm/tensors.h"
#include "tests/support/catch.h"

/// Results of the collectives, bit for bit, against a serial reference.
namespace dstrain::test {
namespace {

using comm::Communicator;

/// Elements of a shard. The large ones take several rounds of a slot, the last not full, and the
/// largest is written past the cache.
std::vector<std::int64_t> shard_numels(int world, std::size_t placement, CpuStream::Mode mode) {
  if (mode == CpuStream::Mode::worker_thread) return {0, 64, 4097};  // more is slow under TSan
  std::vector<std::int64_t> numels{0, 1, 3, 63, 64, 1000, 4096, 4097};
  if (world <= 3 || placement == 0) numels.push_back(150'001);
  if (world == 2 && placement < 3) numels.push_back(300'007);
  return numels;
}

/// A communicator, its stream, where the tensors lie, and what they are of.
struct Bench {
  Communicator& c;
  Placement place;
  StreamView stream;
  DType dtype = DType::f32;

  [[nodiscard]] Tensor in(const Floats& values) const {
    return {values, place.in, stream, place.offset, dtype};
  }
  [[nodiscard]] Tensor out(const Floats& values) const {
    return {values, place.out, stream, place.offset, dtype};
  }
  [[nodiscard]] Floats values_of(int rank, std::int64_t numel) const {
    return test::values_of(rank, numel, dtype);
  }
  [[nodiscard]] Floats sum(std::int64_t numel) const { return serial_sum(c.size(), numel, dtype); }
};

void check_all_gather(const Bench& on, std::int64_t numel) {
  Communicator& c = on.c;
  const Floats own = on.values_of(c.rank(), numel);
  const Floats empty(static_cast<std::size_t>(numel * c.size()), -1.0F);
  Floats own_in_empty = empty;
  std::copy(own.begin(), own.end(), own_in_empty.begin() + c.rank() * numel);
  Tensor shard = on.in(own);
  Tensor whole = on.out(empty);
  Tensor in_place = on.in(own_in_empty);
  c.all_gather(shard.view(), whole.view(), on.stream);
  c.all_gather(in_place.view(c.rank() * numel, numel), in_place.view(), on.stream);
  on.stream.synchronize();
  for (int r = 0; r < c.size(); ++r) {
    require(same_bits(part(whole.values(), r * numel, numel), on.values_of(r, numel)),
            "all_gather");
  }
  require(same_bits(whole.values(), in_place.values()), "all_gather in place");
  require(same_bits(shard.values(), own), "all_gather leaves the shard alone");
}

void check_reduce_scatter(const Bench& on, std::int64_t numel) {
  Communicator& c = on.c;
  const Floats own = on.values_of(c.rank(), numel * c.size());
  Tensor whole = on.in(own);
  Tensor in_place = on.in(own);
  Tensor shard = on.out(Floats(static_cast<std::size_t>(numel), -1.0F));
  c.reduce_scatter(whole.view(), shard.view(), on.stream);
  c.reduce_scatter(in_place.view(), in_place.view(c.rank() * numel, numel), on.stream);
  on.stream.synchronize();
  const Floats expected = part(on.sum(numel * c.size()), c.rank() * numel, numel);
  require(same_bits(shard.values(), expected), "reduce_scatter");
  require(same_bits(part(in_place.values(), c.rank() * numel, numel), expected),
          "reduce_scatter in place");
}

void check_all_reduce(const Bench& on, std::int64_t numel) {
  Tensor values = on.in(on.values_of(on.c.rank(), numel));
  on.c.all_reduce(values.view(), on.stream);
  on.stream.synchronize();
  require(same_bits(values.values(), on.sum(numel)), "all_reduce");
}

void check_broadcast(const Bench& on, std::int64_t numel) {
  for (int root = 0; root < on.c.size(); ++root) {
    Tensor values = on.in(on.values_of(on.c.rank(), numel));
    on.c.broadcast(values.view(), root, on.stream);
    on.stream.synchronize();
    require(same_bits(values.values(), on.values_of(root, numel)), "broadcast");
  }
}

void check_all_to_all(const Bench& on, std::int64_t numel) {
  const int world = on.c.size();
  Tensor parts = on.in(on.values_of(on.c.rank(), numel * world));
  Tensor received = on.out(Floats(static_cast<std::size_t>(numel * world), -1.0F));
  on.c.all_to_all(parts.view(), received.view(), on.stream);
  on.stream.synchronize();
  for (int r = 0; r < world; ++r) {
    const Floats sent = part(on.values_of(r, numel * world), on.c.rank() * numel, numel);
    require(same_bits(part(received.values(), r * numel, numel), sent), "all_to_all");
  }
}

/// What a rank gives to sums of halves that lose ties, overflow, are very small or no numbers.
Floats special_values(int rank, DType dtype) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const bool first = rank == 0;
  const bool f16 = dtype == DType::f16;
  return {first ? (f16 ? 2048.0F : 256.0F) : 1.0F,  // a sum in fp32 would keep the ones
          f16 ? 65504.0F : 0x1.fep127F,
          f16 ? 0x1p-24F : 0x1p-126F,  // streams flush denormals of fp32, which bf16 shares
          -0.0F,
          first ? infinity : -1.0F,
          first ? infinity : -infinity,
          first ? nan : 1.0F,
          first ? 1.0F : nan};
}

/// What a NaN holds besides is left open.
bool same_numbers(const Floats& left, const Floats& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](float a, float b) {
    return std::isnan(a) ? std::isnan(b) : same_bits({a}, {b});
  });
}

void check_special_sums(const Bench& on) {
  Floats expected = special_values(0, on.dtype);
  for (int rank = 1; rank < on.c.size(); ++rank) {
    const Floats terms = special_values(rank, on.dtype);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = rounded(expected[i] + terms[i], on.dtype);
    }
  }
  const Floats own = special_values(on.c.rank(), on.dtype);
  Floats repeated;
  for (int rank = 0; rank < on.c.size(); ++rank) {
    repeated.insert(repeated.end(), own.begin(), own.end());
  }
  Tensor values = on.in(own);
  Tensor whole = on.in(repeated);
  Tensor shard = on.out(own);
  on.c.all_reduce(values.view(), on.stream);
  on.c.reduce_scatter(whole.view(), shard.view(), on.stream);
  on.stream.synchronize();
  require(same_numbers(values.values(), expected), "all_reduce of special values");
  require(same_numbers(shard.values(), expected), "reduce_scatter of special values");
}

/// Values so large that sums wrap around.
template <class T>
void check_integer_sums_of(Communicator& c, std::int64_t numel, StreamView stream) {
  const auto value = [](int rank, std::int64_t i) {
    const auto words = philox({.seed = 9,
                               .stream = static_cast<std::uint32_t>(rank),
                               .index = static_cast<std::uint64_t>(i)});
    return static_cast<std::make_unsigned_t<T>>(std::uint64_t{words[0]} << 32 | words[1]);
  };
  const auto sum = [&](std::int64_t i) {
    std::make_unsigned_t<T> total = 0;
    for (int r = 0; r < c.size(); ++r) total += value(r, i);
    return static_cast<T>(total);
  };
  std::vector<T> whole(static_cast<std::size_t>(numel * c.size()));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    whole[i] = static_cast<T>(value(c.rank(), static_cast<std::int64_t>(i)));
  }
  std::vector<T> values(whole.begin(), whole.begin() + numel);
  std::vector<T> shard(static_cast<std::size_t>(numel));
  c.reduce_scatter(HostView(whole.data(), dtype_of<T>, {numel * c.size()}),
                   HostView(shard.data(), dtype_of<T>, {numel}), stream);
  c.all_reduce(HostView(values.data(), dtype_of<T>, {numel}), stream);
  stream.synchronize();
  for (std::int64_t i = 0; i < numel; ++i) {
    const auto at = static_cast<std::size_t>(i);
    require(shard[at] == sum(c.rank() * numel + i), "reduce_scatter of integers");
    require(values[at] == sum(i), "all_reduce of integers");
  }
}

void check_integer_sums(const Bench& on, std::int64_t numel) {
  check_integer_sums_of<std::int32_t>(on.c, numel, on.stream);
  check_integer_sums_of<std::int64_t>(on.c, numel, on.stream);
}

/// A run of tensors that share a block: what lies beside a tensor is left alone.
void check_neighbours(const Bench& on) {
  constexpr std::int64_t numel = 5000;
  const std::int64_t world = on.c.size();
  Tensor block = on.in(values_of(on.c.rank(), (world + 2) * numel));
  const Floats before = block.values();
  on.c.all_gather(block.view(0, numel), block.view(numel, world * numel), on.stream);
  on.stream.synchronize();
  const Floats after = block.values();
  require(same_bits(part(after, 0, numel), part(before, 0, numel)), "before");
  const std::int64_t behind = (world + 1) * numel;
  require(same_bits(part(after, behind, numel), part(before, behind, numel)), "behind");
  for (int r = 0; r < on.c.size(); ++r) {
    require(same_bits(part(after, (r + 1) * numel, numel), values_of(r, numel)), "all_gather");
  }
}

void check_bytes(Communicator& c, StreamView stream) {
  std::vector<std::uint16_t> shard(5, static_cast<std::uint16_t>(c.rank() + 7));
  std::vector<std::uint16_t> whole(5 * static_cast<std::size_t>(c.size()));
  const auto numel = static_cast<std::int64_t>(whole.size());
  c.all_gather(HostView(shard.data(), DType::u16, {5}), HostView(whole.data(), DType::u16, {numel}),
               stream);
  stream.synchronize();
  for (std::size_t i = 0; i < whole.size(); ++i) require(whole[i] == i / 5 + 7, "all_gather u16");
}

}  // namespace

void check_results(const GroupMaker& groups, const std::vector<int>& worlds) {
  for (const int world : worlds) {
    for (const auto mode : {CpuStream::Mode::inline_on_caller, CpuStream::Mode::worker_thread}) {
      CAPTURE(groups.name, world, mode == CpuStream::Mode::worker_thread);
      const Group group = groups.make(world, hang_seconds);
      REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
        CpuStream stream(mode);
        HostMemory host;
        const std::vector<Placement> places = placements(c, host);
        for (std::size_t i = 0; i < places.size(); ++i) {
          const Bench on{c, places[i], stream};
          for (const std::int64_t numel : shard_numels(world, i, mode)) {
            check_all_gather(on, numel);
            check_reduce_scatter(on, numel);
            check_all_reduce(on, numel);
            check_all_reduce(on, numel * 2 + 1);
            check_broadcast(on, numel);
            check_all_to_all(on, numel);
            if (numel > 4097 && world > 3) continue;  // the reference takes long
            for (const DType half : {DType::bf16, DType::f16}) {
              const Bench on_halves{c, places[i], stream, half};
              check_reduce_scatter(on_halves, numel);
              check_all_reduce(on_halves, numel * 2 + 1);
            }
          }
          check_special_sums({c, places[i], stream, DType::bf16});
          check_special_sums({c, places[i], stream, DType::f16});
          check_integer_sums(on, 1001);
          check_neighbours(on);
        }
        check_bytes(c, stream);
        stream.synchronize();  // gives the blocks back before the communicator goes
      }));
    }
  }
}

/// Two and a half times what a rank of a group of messages stages of the others in a round.
void check_long_sums(const GroupMaker& groups, const std::vector<int>& worlds) {
  for (const int world : worlds) {
    CAPTURE(groups.name, world);
    const Group group = groups.make(world, hang_seconds);
    REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
      CpuStream stream(CpuStream::Mode::inline_on_caller);
      HostMemory host;
      for (const DType dtype : {DType::f32, DType::bf16}) {
        const Bench on{c, {host, host}, stream, dtype};
        const std::int64_t round_numel = 4 * mebibyte / size_of(dtype);
        const std::int64_t numel = round_numel * 5 / 2 / std::max(1, world - 1) + 3;
        check_all_reduce(on, numel * world);
        check_reduce_scatter(on, numel);
      }
    }));
  }
}

/// Random sequences without a wait between: slots and announcements are reused at once.
void check_sequences(const GroupMaker& groups, const std::vector<int>& worlds) {
  for (const int world : worlds) {
    CAPTURE(groups.name, world);
    const Group group = groups.make(world, hang_seconds);
    REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
      CpuStream stream(CpuStream::Mode::inline_on_caller);
      HostMemory host;
      const std::vector<Placement> places = placements(c, host);
      for (std::uint64_t step = 0; step < 100 * places.size(); ++step) {
        const auto words = philox({.seed = 5, .index = step});
        const std::int64_t numel = words[1] % 3000;
        constexpr std::array dtypes{DType::f32, DType::bf16, DType::f16};
        const Bench on{c, places[words[2] % places.size()], stream, dtypes[words[3] % 3]};
        switch (words[0] % 6) {
          case 0:
            check_all_gather(on, numel);
            break;
          case 1:
            check_reduce_scatter(on, numel);
            break;
          case 2:
            check_all_reduce(on, numel);
            break;
          case 3:
            check_broadcast(on, numel);
            break;
          case 4:
            check_all_to_all(on, numel);
            break;
          default:
            check_integer_sums(on, numel);
        }
      }
    }));
  }
}

}  // namespace dstrain::test
