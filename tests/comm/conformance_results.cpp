#include <catch2/catch.hpp>

#include "runtime/base/philox.h"
#include "tests/comm/conformance.h"
#include "tests/comm/reference.h"

/// Results of the collectives, bit for bit, against a serial reference.
namespace dstrain::test {
namespace {

using comm::Communicator;

/// Elements of a shard. The large ones take several rounds of a slot, the last not full.
const std::vector<std::int64_t> shard_numels{0, 1, 3, 63, 64, 1000, 4096, 4097, 150'001};

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

void check_all_gather(Communicator& c, std::int64_t numel, StreamView stream) {
  Floats shard = values_of(c.rank(), numel);
  Floats whole(static_cast<std::size_t>(numel * c.size()), -1.0F);
  Floats in_place = whole;
  std::copy(shard.begin(), shard.end(), in_place.begin() + c.rank() * numel);
  c.all_gather(view(shard), view(whole), stream);
  c.all_gather(view(in_place, c.rank() * numel, numel), view(in_place), stream);
  stream.synchronize();
  for (int r = 0; r < c.size(); ++r) {
    require(same_bits(part(whole, r * numel, numel), values_of(r, numel)), "all_gather");
  }
  require(same_bits(whole, in_place), "all_gather in place");
}

void check_reduce_scatter(Communicator& c, std::int64_t numel, StreamView stream) {
  Floats whole = values_of(c.rank(), numel * c.size());
  Floats in_place = whole;
  Floats shard(static_cast<std::size_t>(numel), -1.0F);
  c.reduce_scatter(view(whole), view(shard), stream);
  c.reduce_scatter(view(in_place), view(in_place, c.rank() * numel, numel), stream);
  stream.synchronize();
  const Floats expected = part(serial_sum(c.size(), numel * c.size()), c.rank() * numel, numel);
  require(same_bits(shard, expected), "reduce_scatter");
  require(same_bits(part(in_place, c.rank() * numel, numel), expected), "reduce_scatter in place");
}

void check_all_reduce(Communicator& c, std::int64_t numel, StreamView stream) {
  Floats values = values_of(c.rank(), numel);
  c.all_reduce(view(values), stream);
  stream.synchronize();
  require(same_bits(values, serial_sum(c.size(), numel)), "all_reduce");
}

void check_broadcast(Communicator& c, std::int64_t numel, StreamView stream) {
  for (int root = 0; root < c.size(); ++root) {
    Floats values = values_of(c.rank(), numel);
    c.broadcast(view(values), root, stream);
    stream.synchronize();
    require(same_bits(values, values_of(root, numel)), "broadcast");
  }
}

void check_bytes(Communicator& c, StreamView stream) {
  std::vector<std::uint16_t> shard(5, static_cast<std::uint16_t>(c.rank() + 7));
  std::vector<std::uint16_t> whole(5 * static_cast<std::size_t>(c.size()));
  const auto numel = static_cast<std::int64_t>(whole.size());
  c.all_gather({shard.data(), DType::u16, Shape{5}}, {whole.data(), DType::u16, Shape{numel}},
               stream);
  stream.synchronize();
  for (std::size_t i = 0; i < whole.size(); ++i) require(whole[i] == i / 5 + 7, "all_gather u16");
}

}  // namespace

void check_results(const GroupMaker& groups, const std::vector<int>& worlds) {
  for (const int world : worlds) {
    for (const auto mode : {Stream::Mode::inline_on_caller, Stream::Mode::worker_thread}) {
      CAPTURE(groups.name, world, mode == Stream::Mode::worker_thread);
      const Group group = groups.make(world, 60);
      REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
        Stream stream(mode);
        for (const std::int64_t numel : shard_numels) {
          if (numel > 5000 && mode == Stream::Mode::worker_thread) continue;  // slow under TSan
          check_all_gather(c, numel, stream);
          check_reduce_scatter(c, numel, stream);
          check_all_reduce(c, numel, stream);
          check_all_reduce(c, numel * 2 + 1, stream);
          check_broadcast(c, numel, stream);
        }
        check_bytes(c, stream);
      }));
    }
  }
}

/// Random sequences without a wait between: slots and announcements are reused at once.
void check_sequences(const GroupMaker& groups, const std::vector<int>& worlds) {
  for (const int world : worlds) {
    CAPTURE(groups.name, world);
    const Group group = groups.make(world, 60);
    REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
      Stream stream(Stream::Mode::inline_on_caller);
      for (std::uint64_t step = 0; step < 200; ++step) {
        const auto words = philox({.seed = 5, .index = step});
        const std::int64_t numel = words[1] % 3000;
        switch (words[0] % 5) {
          case 0:
            check_all_gather(c, numel, stream);
            break;
          case 1:
            check_reduce_scatter(c, numel, stream);
            break;
          case 2:
            check_all_reduce(c, numel, stream);
            break;
          case 3:
            check_broadcast(c, numel, stream);
            break;
          default:
            static_cast<void>(group.count());
            c.barrier(stream);
            require(group.counted() % c.size() == 0, "barrier");
            c.barrier(stream);
        }
      }
    }));
  }
}

}  // namespace dstrain::test
