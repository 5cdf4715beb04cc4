#include "offload/record_swap.h"

#include <atomic>
#include <future>
#include <thread>

#include "runtime/device/cpu_stream.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using offload::FileRange;
using offload::RecordSwap;

namespace {

constexpr Bytes page = offload::io_alignment;
const std::vector<Bytes> sizes{2 * page, 3 * page, page, 5 * page, 2 * page, 4 * page};

/// Records over a disk, and what should be in them.
struct Fixture {
  explicit Fixture(RecordSwap::Options options)
      : swap(*io, folder.path(), sizes, options, memory, stream) {}
  FileRange whole(int record) const { return {0, sizes[static_cast<std::size_t>(record)]}; }
  std::span<std::byte> part(int record, std::span<std::byte> buffer, FileRange range) const {
    return buffer.first(static_cast<std::size_t>(whole(record).end))
        .subspan(static_cast<std::size_t>(range.begin),
                 static_cast<std::size_t>(range.end - range.begin));
  }
  void write(int record, FileRange range, std::uint64_t seed) {
    test::fill(part(record, swap.acquire(record, {}), range), seed);
    swap.release(record, range);
  }
  bool holds(int record, FileRange range, std::uint64_t seed) {
    const bool same = test::is_filled(part(record, swap.acquire(record, range), range), seed);
    swap.release(record, {});
    return same;
  }

  test::TempDir folder;
  std::unique_ptr<offload::AsyncFileIo> io = test::make_io(IoKind::automatic, {});
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  RecordSwap swap;
};

/// A disk that moves nothing.
class FakeDisk final : public offload::AsyncFileIo {
 public:
  bool reads_fail = false;
  bool done_already = true;
  int reads = 0;
  std::vector<std::string> log;  ///< of writes begun, and of those waited for

  offload::Ticket read(offload::SwapFile& /*file*/, Bytes, std::span<std::byte>) override {
    ++reads;
    return {0};
  }
  offload::Ticket write(offload::SwapFile& /*file*/, Bytes, std::span<const std::byte>) override {
    log.push_back(fmt::format("write {}", ++writes_));
    return {writes_};
  }
  void wait(offload::Ticket ticket) override {
    if (ticket.id > 0) log.push_back(fmt::format("wait {}", ticket.id));
    if (reads_fail && ticket.id == 0) fail(ErrorCode::io, "no read");
  }
  [[nodiscard]] bool done(offload::Ticket /*ticket*/) const override { return done_already; }
  bool register_memory(std::span<std::byte> /*memory*/) override { return false; }
  void unregister_memory(std::span<std::byte> /*memory*/) noexcept override {}
  [[nodiscard]] const char* name() const noexcept override { return "fake"; }

 private:
  std::uint64_t writes_ = 0;
};

}  // namespace

TEST_CASE("RecordSwap: parts of a record are written and read separately", "[offload][swap]") {
  Fixture records({.buffers = GENERATE(1, 2, 4), .write_behind = GENERATE(true, false)});
  for (int record = 0; record < 6; ++record) records.write(record, {0, page}, 10);
  for (const int record : {0, 1, 3, 4, 5}) records.write(record, {page, 2 * page}, 20);
  for (const int record : {5, 0, 3, 1, 4}) {
    CHECK(records.holds(record, {0, page}, 10));
    CHECK(records.holds(record, {page, 2 * page}, 20));
    const auto all = records.swap.acquire(record, records.whole(record));
    CHECK(test::is_filled(records.part(record, all, {0, page}), 10));
    CHECK(test::is_filled(records.part(record, all, {page, 2 * page}), 20));
    records.swap.release(record, {});
  }
}

TEST_CASE("RecordSwap: writing a record to another one leaves its own copy unchanged",
          "[offload][swap]") {
  Fixture records({.buffers = GENERATE(1, 2, 4), .write_behind = GENERATE(true, false)});
  constexpr int from = 0;
  constexpr int to = 4;  // as large
  for (std::uint64_t round = 1; round < 4; ++round) {
    records.write(from, records.whole(from), round);
    records.write(to, records.whole(to), 100);
    const auto memory = records.swap.acquire(from, records.whole(from));
    test::fill(records.part(from, memory, {0, page}), 10 * round);
    records.swap.release(from, {0, page}, to);
    CHECK(records.holds(from, records.whole(from), round));
    CHECK(records.holds(to, {0, page}, 10 * round));
    const auto rest = records.swap.acquire(to, {page, 2 * page});
    CHECK_FALSE(test::is_filled(records.part(to, rest, {page, 2 * page}), 10 * round));
    records.swap.release(to, {});
  }
}

TEST_CASE("RecordSwap: an expected record is the one that is read", "[offload][swap]") {
  Fixture records({.buffers = GENERATE(1, 2, 3)});
  for (int round = 0; round < 5; ++round) {
    for (int record = 0; record < 6; ++record) {
      const auto seed = static_cast<std::uint64_t>(round * 10 + record);
      const auto memory = records.swap.acquire(record, records.whole(record));
      if (round > 0)
        CHECK(test::is_filled(records.part(record, memory, records.whole(record)), seed - 10));
      records.swap.expect((record + 1) % 6, records.whole((record + 1) % 6));
      test::fill(records.part(record, memory, records.whole(record)), seed);
      records.swap.release(record, records.whole(record));
    }
  }
}

TEST_CASE("RecordSwap: a record expected in vain is evicted", "[offload][swap]") {
  Fixture records({.buffers = 2});
  for (int record = 0; record < 6; ++record) {
    records.write(record, records.whole(record), static_cast<std::uint64_t>(record));
  }
  records.swap.expect(0, records.whole(0));
  records.swap.expect(1, records.whole(1));
  for (int record = 5; record >= 0; --record) {
    CHECK(records.holds(record, records.whole(record), static_cast<std::uint64_t>(record)));
  }
}

TEST_CASE("RecordSwap: another range than the expected one is read", "[offload][swap]") {
  Fixture records({.buffers = GENERATE(1, 2)});
  const FileRange first{0, page};
  const FileRange second{page, 2 * page};
  records.write(0, records.whole(0), 1);
  const std::span<std::byte> memory = records.swap.acquire(0, second);
  const std::vector<std::byte> kept(memory.begin() + page, memory.begin() + 2 * page);
  records.swap.release(0, {});
  for (const int record : {4, 1, 4, 1}) records.write(record, records.whole(record), 50);
  records.swap.expect(0, first);
  const auto part = records.part(0, records.swap.acquire(0, second), second);
  CHECK(std::equal(part.begin(), part.end(), kept.begin(), kept.end()));
  records.swap.release(0, {});
}

TEST_CASE("RecordSwap: a record is not written while an older write of it is under way",
          "[offload][swap]") {
  const test::TempDir folder;
  FakeDisk io;
  io.done_already = false;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  RecordSwap swap(io, folder.path(), {page, page}, {.buffers = 3}, memory, stream);
  std::ignore = swap.take(1, {});
  swap.release(1, {0, page});
  const bool from_another = GENERATE(true, false);
  const int record = from_another ? 0 : 1;
  std::ignore = swap.take(record, {});
  swap.release(record, {0, page}, 1);
  CHECK((io.log == std::vector<std::string>{"write 1", "wait 1", "write 2"}));
}

TEST_CASE("RecordSwap: a read that is not urgent waits for no write", "[offload][swap]") {
  const test::TempDir folder;
  FakeDisk io;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  RecordSwap swap(io, folder.path(), {page, page, page}, {.buffers = 2}, memory, stream);
  std::ignore = swap.take(0, {});
  std::ignore = swap.take(1, {});
  swap.expect_if_free(2, {0, page});
  CHECK(io.reads == 0);
  io.done_already = false;
  swap.release(0, {0, page});
  swap.expect_if_free(2, {0, page});
  CHECK(io.reads == 0);
  io.done_already = true;
  swap.expect_if_free(2, {0, page});
  CHECK(io.reads == 1);
  swap.expect_if_free(2, {0, page});
  CHECK(io.reads == 1);
  swap.release(1, {});
}

namespace {

/// Four records of a page over a disk that moves nothing and is never done by itself.
struct SlowDisk {
  explicit SlowDisk(RecordSwap::Options options)
      : swap(io, folder.path(), {page, page, page, page}, options, memory, stream) {
    io.done_already = false;
  }
  void use(int record, FileRange written = {}) {
    std::ignore = swap.take(record, {});
    swap.release(record, written);
  }

  test::TempDir folder;
  FakeDisk io;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  RecordSwap swap;
};

constexpr FileRange all{0, page};
using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("RecordSwap: a record that is in a buffer is not read into another", "[offload][swap]") {
  SlowDisk disk({.buffers = 3});
  disk.swap.expect(0, all);
  disk.swap.expect(0, all);
  disk.swap.expect_if_free(0, all);
  CHECK(disk.io.reads == 1);
  std::ignore = disk.swap.take(0, all);
  disk.swap.expect(0, all);
  CHECK(disk.io.reads == 1);
  disk.swap.release(0, all);
  disk.swap.expect(0, all);  // still being written
  CHECK(disk.io.reads == 1);
}

TEST_CASE("RecordSwap: the oldest write is waited for when a buffer is needed", "[offload][swap]") {
  SlowDisk disk({.buffers = 2});
  const bool in_order = GENERATE(true, false);
  std::ignore = disk.swap.take(0, {});
  std::ignore = disk.swap.take(1, {});
  disk.swap.release(in_order ? 0 : 1, all);
  disk.swap.release(in_order ? 1 : 0, all);
  std::ignore = disk.swap.take(2, {});
  CHECK((disk.io.log == Log{"write 1", "write 2", "wait 1"}));
  disk.swap.release(2, {});
}

TEST_CASE("RecordSwap: the oldest record expected in vain is evicted first", "[offload][swap]") {
  SlowDisk disk({.buffers = 2});
  disk.swap.expect(0, all);
  disk.swap.expect(1, all);
  std::ignore = disk.swap.take(2, {});
  std::ignore = disk.swap.take(1, all);
  CHECK(disk.io.reads == 2);
  disk.swap.release(1, {});
  disk.swap.release(2, {});
}

TEST_CASE("RecordSwap: without write-behind a release waits for the disk", "[offload][swap]") {
  SlowDisk behind({.buffers = 2, .write_behind = true});
  behind.use(0, all);
  CHECK((behind.io.log == Log{"write 1"}));
  SlowDisk waiting({.buffers = 2, .write_behind = false});
  waiting.use(0, all);
  CHECK((waiting.io.log == Log{"write 1", "wait 1"}));
}

TEST_CASE("RecordSwap: a buffer being written to another record counts as that record",
          "[offload][swap]") {
  SlowDisk disk({.buffers = 2});
  std::ignore = disk.swap.take(0, {});
  disk.swap.release(0, all, 1);
  const int next = GENERATE(0, 1);
  std::ignore = disk.swap.take(next, {});
  CHECK((disk.io.log == (next == 1 ? Log{"write 1", "wait 1"} : Log{"write 1"})));
  disk.swap.release(next, {});
}

TEST_CASE("RecordSwap: a buffer whose read failed is given to a waiting caller",
          "[offload][swap]") {
  const test::TempDir folder;
  FakeDisk io;
  io.reads_fail = true;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
  RecordSwap swap(io, folder.path(), {page, page}, {.buffers = 1}, memory, stream);
  for (int round = 0; round < 200; ++round) {
    std::ignore = swap.take(0, {0, page});
    std::atomic<bool> begun = false;
    auto waiter = std::async(std::launch::async, [&] {
      begun = true;
      std::ignore = swap.take(1, {});
    });
    while (!begun) std::this_thread::yield();
    CHECK(test::error_of([&] { swap.release(0, {}); }) == "no read");
    waiter.get();
    swap.release(1, {});
  }
}
