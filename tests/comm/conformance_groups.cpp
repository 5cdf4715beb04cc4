
#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/comm/conformance.h"
#include "tests/comm/reference.h"
#include "tests/comm/tensors.h"
#include "tests/support/catch.h"

/// Subgroups, messages between two ranks, and failures.
namespace dstrain::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using comm::Communicator;

/// Tensors in the memory of a subgroup and of its parent, in collectives of both.
void check_memory_of_split(Communicator& parent, Communicator& child) {
  constexpr std::int64_t numel = 20'000;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  for (Communicator* const owner : {&parent, &child}) {
    for (Communicator* const user : {&parent, &child}) {
      Tensor values(values_of(user->rank(), numel * user->size()), owner->memory(), stream, 0);
      user->reduce_scatter(values.view(), values.view(user->rank() * numel, numel), stream);
      user->all_gather(values.view(user->rank() * numel, numel), values.view(), stream);
      require(same_bits(values.values(), serial_sum(user->size(), numel * user->size())),
              "memory of a split");
    }
  }
}

}  // namespace

void check_split(const GroupMaker& groups, const std::vector<int>& worlds) {
  for (const int world : worlds) {
    CAPTURE(groups.name, world);
    const Group group = groups.make(world, hang_seconds);
    REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
      CpuStream stream(CpuStream::Mode::inline_on_caller);
      // Odd and even ranks, each in reverse order.
      const auto half = c.split({.color = c.rank() % 2, .key = -c.rank()});
      const int peers = (c.size() + 1 - c.rank() % 2) / 2;
      require(half->size() == peers, "size of a split");
      require(half->rank() == peers - 1 - c.rank() / 2, "rank in a split");
      Floats sum{static_cast<float>(c.rank())};
      half->all_reduce(view(sum), stream);
      const int first = c.rank() % 2;
      require(sum[0] == static_cast<float>(peers * first + peers * (peers - 1)), "sum in a split");
      check_memory_of_split(c, *half);
      // The subgroup splits again and the parent still works.
      const auto single = half->split({.color = half->rank()});
      require(single->size() == 1, "size of a split of a split");
      meet(*single, stream);
      Floats all{1.0F};
      c.all_reduce(view(all), stream);
      require(all[0] == static_cast<float>(c.size()), "sum after a split");
    }));
  }
}

void check_messages(const GroupMaker& groups) {
  const Group group = groups.make(3, hang_seconds);
  REQUIRE_NOTHROW(run_group(group, [&](Communicator& c) {
    CpuStream stream(CpuStream::Mode::worker_thread);
    for (const std::int64_t numel : {0, 1, 1000, 65'536, 500'003}) {
      // Around the ring; rank 0 sends first.
      const int next = (c.rank() + 1) % 3;
      const int previous = (c.rank() + 2) % 3;
      Floats mine = values_of(c.rank(), numel);
      Floats theirs(mine.size());
      if (c.rank() == 0) c.send(view(mine), next, stream);
      c.receive(view(theirs), previous, stream);
      if (c.rank() != 0) c.send(view(mine), next, stream);
      meet(c, stream);
      require(same_bits(theirs, values_of(previous, numel)), "receive");
    }
  }));
}

namespace {

void check_mismatch(const GroupMaker& groups) {
  const Group group = groups.make(3, hang_seconds);
  const auto failures = failures_of_ranks(group, [](Communicator& c) {
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    Floats values(c.rank() == 2 ? 5 : 4);
    c.all_reduce(view(values), stream);
  });
  for (const Failed& failed : failures) {  // rank 2 and one of the others
    CHECK_THAT(failed.message, ContainsSubstring("the ranks disagree: rank ") &&
                                   ContainsSubstring(" does all_reduce of 4 f32") &&
                                   ContainsSubstring("rank 2 does all_reduce of 5 f32"));
  }
}

void check_wrong_operation(const GroupMaker& groups) {
  const Group group = groups.make(2, hang_seconds);
  const auto failures = failures_of_ranks(group, [](Communicator& c) {
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    Floats values(4);
    c.rank() == 0 ? c.broadcast(view(values), 0, stream) : meet(c, stream);
  });
  for (const Failed& failed : failures) {
    CHECK_THAT(failed.message, ContainsSubstring("rank 0 does broadcast of 4 f32 from rank 0") &&
                                   ContainsSubstring("rank 1 does all_reduce of 1 f32"));
  }
}

void check_wrong_message(const GroupMaker& groups) {
  const Group group = groups.make(2, hang_seconds);
  const auto failures = failures_of_ranks(group, [](Communicator& c) {
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    Floats values(c.rank() == 0 ? 1'000'000 : 3);
    c.rank() == 0 ? c.send(view(values), 1, stream) : c.receive(view(values), 0, stream);
  });
  // A transport may have taken the message into its buffers before rank 1 refuses it.
  if (!failures[0].message.empty()) {
    CHECK_THAT(failures[0].message, ContainsSubstring("send of 1000000 f32 to rank 1") &&
                                        ContainsSubstring("aborted by rank 1"));
  }
  CHECK_THAT(failures[1].message,
             ContainsSubstring("rank 1 does receive of 3 f32 from rank 0, rank 0 does send of "
                               "1000000 f32 to rank 1"));
}

void check_timeout(const GroupMaker& groups) {
  const Group group = groups.make(4, 0.2);
  const auto failures = failures_of_ranks(group, [](Communicator& c) {
    if (c.rank() == 1 || c.rank() == 3) return;
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    Floats values(4);
    c.all_reduce(view(values), stream);
  });
  CHECK_THAT(failures[0].message,
             ContainsSubstring("all_reduce of 4 f32") &&
                 ContainsSubstring("timed out after 0.2 s: waiting for ranks 1 3"));
  CHECK_THAT(failures[2].message, ContainsSubstring("waiting for ranks 1 3"));
}

void check_abort(const GroupMaker& groups) {
  const Group group = groups.make(3, hang_seconds);
  const auto failures = failures_of_ranks(group, [](Communicator& c) {
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    if (c.rank() == 1) {
      c.abort();
    } else {
      meet(c, stream);
    }
  });
  for (const std::size_t rank : {0U, 2U}) {
    CHECK(failures[rank].code == ErrorCode::aborted);
    CHECK_THAT(failures[rank].message,
               ContainsSubstring("all_reduce of 1 f32") && ContainsSubstring("aborted by rank 1"));
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  if (group.has(0))
    CHECK_THROWS_WITH(meet(group[0], stream), ContainsSubstring("aborted by rank 1"));
}

/// Rank 0 is alive and elsewhere: what rank 2 waits for does not come from it.
void check_abort_from_aside(const GroupMaker& groups) {
  const Group group = groups.make(3, hang_seconds);
  const auto failures = failures_of_ranks(group, [&](Communicator& c) {
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    if (c.rank() == 0) static_cast<void>(group.told(2));
    if (c.rank() == 1) c.abort();
    if (c.rank() == 2) meet(c, stream);
  });
  CHECK_THAT(failures[2].message, ContainsSubstring("aborted by rank 1"));
}

void check_abort_of_worker_stream(const GroupMaker& groups) {
  const Group group = groups.make(2, hang_seconds);
  const auto failures = failures_of_ranks(group, [](Communicator& c) {
    CpuStream stream(CpuStream::Mode::worker_thread);
    Floats values(4);
    if (c.rank() == 0) {
      c.receive(view(values), 1, stream);
    } else {
      c.abort();
    }
    stream.synchronize();
  });
  CHECK(failures[0].code == ErrorCode::aborted);
  CHECK_THAT(failures[0].message, ContainsSubstring("receive of 4 f32 from rank 1") &&
                                      ContainsSubstring("aborted by rank 1"));
}

void check_leaving(const GroupMaker& groups) {
  Group group = groups.make(3, hang_seconds);
  const auto failures = failures_of_ranks(group, [&](Communicator& c) {
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    meet(c, stream);
    if (c.rank() == 2) {
      group.destroy(2);
    } else {
      meet(c, stream);
    }
  });
  CHECK_THAT(failures[0].message, ContainsSubstring("has left the group"));
  CHECK_THAT(failures[1].message, ContainsSubstring("has left the group"));
}

}  // namespace

void check_failures(const GroupMaker& groups) {
  CAPTURE(groups.name);
  check_mismatch(groups);
  check_wrong_operation(groups);
  check_wrong_message(groups);
  check_timeout(groups);
  check_abort(groups);
  check_abort_from_aside(groups);
  check_abort_of_worker_stream(groups);
  check_leaving(groups);
}

}  // namespace dstrain::test
