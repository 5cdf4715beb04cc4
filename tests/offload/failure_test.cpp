// What goes wrong below, with every implementation.
#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/os/fd_io.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::offload;
using test::AlignedBytes;
using test::error_of;
using test::make_io;

namespace {

/// The file once more, as someone else could reach it.
UniqueFd from_outside(const SwapFile& file) {
  UniqueFd fd(::open(fmt::format("/proc/self/fd/{}", file.fd()).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) fail_errno(errno, "open " + file.name());
  return fd;
}

void flip(const SwapFile& file, std::uint64_t offset) {
  const UniqueFd fd = from_outside(file);
  std::byte byte{};
  read_fully_at(fd.get(), offset, {&byte, 1}, file.name());
  byte ^= std::byte{16};
  write_fully_at(fd.get(), offset, {&byte, 1}, file.name());
  flush_file(fd.get(), file.name());
}

}  // namespace

TEST_CASE("AsyncFileIo: one flipped bit is found with its place", "[offload][failure]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {.block_size = 64 * kibibyte, .queue_depth = 4});
  const test::TempDir directory;
  const Bytes size = mebibyte;
  SwapFile file(directory.path(), size);
  const AlignedBytes memory(size);
  test::fill(memory.all(), 5);
  io->wait(io->write(file, 0, memory.all()));
  const Bytes place = GENERATE(Bytes{0}, Bytes{70'000}, mebibyte - 1);
  flip(file, static_cast<std::uint64_t>(place));
  const Bytes begin = place / io_alignment * io_alignment;
  CHECK(error_of([&] { io->wait(io->read(file, 0, memory.all())); }) ==
        fmt::format("swap file in {}: bytes {} to {} are not what was written there",
                    directory.path().string(), begin, begin + io_alignment - 1));
  const Bytes beside = begin == 0 ? io_alignment : 0;
  io->wait(io->read(file, beside, memory.part(beside, io_alignment)));
  test::fill(memory.all(), 6);
  io->wait(io->write(file, 0, memory.all()));
  io->wait(io->read(file, 0, memory.all()));
  CHECK(test::is_filled(memory.all(), 6));
}

TEST_CASE("AsyncFileIo: a range of damage is named as one", "[offload][failure]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {});
  const test::TempDir directory;
  SwapFile file(directory.path(), mebibyte);
  const AlignedBytes memory(mebibyte);
  for (const std::uint64_t place : {8192U, 13'000U, 500'000U}) flip(file, place);
  CHECK(error_of([&] { io->wait(io->read(file, 0, memory.all())); }) ==
        file.name() + ": bytes 8192 to 16383 are not what was written there");
}

TEST_CASE("AsyncFileIo: a file that lost its end is an error", "[offload][failure]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {.block_size = 16 * kibibyte, .queue_depth = 1});
  const test::TempDir directory;
  SwapFile file(directory.path(), 32 * kibibyte);
  const AlignedBytes memory(32 * kibibyte);
  REQUIRE(::ftruncate(from_outside(file).get(), 24 * kibibyte) == 0);
  CHECK(error_of([&] { io->wait(io->read(file, 0, memory.all())); }) ==
        file.name() + ": read 8192 bytes at 24576: the file ends before");
}

TEST_CASE("AsyncFileIo: a write that stops short fails where it stopped", "[offload][failure]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const auto io = make_io(kind, {.block_size = 64 * kibibyte, .queue_depth = 2});
  const test::TempDir directory;
  SwapFile file(directory.path(), 256 * kibibyte);
  const AlignedBytes memory(256 * kibibyte);
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{80 * kibibyte, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const std::string error = error_of([&] { io->wait(io->write(file, 0, memory.all())); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  // Of two blocks in flight beyond the limit either may be the first to fail.
  CHECK((error == file.name() + ": write 49152 bytes at 81920: File too large" ||
         error == file.name() + ": write 65536 bytes at 131072: File too large"));
  test::fill(memory.all(), 1);
  io->wait(io->write(file, 0, memory.all()));
  io->wait(io->read(file, 0, memory.all()));
  CHECK(test::is_filled(memory.all(), 1));
}

TEST_CASE("AsyncFileIo: memory that may not be locked is used unregistered", "[offload][failure]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const test::TempDir directory;
  const Bytes size = 4 * mebibyte;
  SwapFile file(directory.path(), size);
  const std::string told = test::in_child([&]() -> std::string {
    constexpr uid_t nobody = 65534;
    const rlimit limit{64 * kibibyte, 64 * kibibyte};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "skip: no limit could be set";
    if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) return "skip: no other user";
    MadeFileIo made = make_file_io({}, IoKind::automatic);
    if (kind == IoKind::threads) made = make_file_io({}, kind);
    const AlignedBytes memory(size);
    test::fill(memory.all(), 9);
    const bool registered = made.io->register_memory(memory.all());
    made.io->wait(made.io->write(file, 0, memory.all()));
    std::ranges::fill(memory.all(), std::byte{});
    made.io->wait(made.io->read(file, 0, memory.all()));
    return fmt::format("{} {}", registered, test::is_filled(memory.all(), 9));
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK(told == "false true");
}
