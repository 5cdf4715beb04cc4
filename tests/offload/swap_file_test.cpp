#include "offload/swap_file.h"

#include <csignal>
#include <fstream>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::offload;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::AlignedBytes;
using test::error_of;

namespace {

namespace fs = std::filesystem;

std::string creation_error(const fs::path& directory, Bytes bytes = 4096) {
  return error_of([&] { SwapFile(directory, bytes); });
}

/// What `body` says in a process that sees another file system at `directory`.
std::string on_mount(const std::string& type,
                     const fs::path& directory,
                     const std::string& options,
                     const std::function<std::string()>& body) {
  const std::string told = test::in_child([&] {
    const std::string refused = test::mount_for_me(type, directory.string(), options);
    return refused.empty() ? body() : refused;
  });
  if (told.starts_with("skip")) test::skip(told);
  return told;
}

}  // namespace

TEST_CASE("SwapFile: allocates its space and leaves no name", "[offload][swap_file]") {
  const test::TempDir directory;
  const SwapFile file(directory.path(), mebibyte);
  CHECK(file.bytes() == mebibyte);
  CHECK(file.name() == "swap file in " + directory.path().string());
  CHECK(fs::is_empty(directory.path()));
  struct stat info {};
  REQUIRE(::fstat(file.fd(), &info) == 0);
  CHECK(info.st_size == mebibyte);
  CHECK(info.st_blocks * 512 >= mebibyte);
  CHECK(info.st_nlink == 0);
  CHECK((info.st_mode & 077) == 0);
}

TEST_CASE("SwapFile: several in one directory are separate files", "[offload][swap_file]") {
  const test::TempDir directory;
  SwapFile one(directory.path(), 4096);
  SwapFile other(directory.path(), 4096);
  const auto io = test::make_io(IoKind::threads, {});
  const AlignedBytes memory(8192);
  test::fill(memory.all(), 1);
  io->wait(io->write(one, 0, memory.part(0, 4096)));
  io->wait(io->write(other, 0, memory.part(4096, 4096)));
  const AlignedBytes back(8192);
  io->wait(io->read(one, 0, back.part(0, 4096)));
  io->wait(io->read(other, 0, back.part(4096, 4096)));
  CHECK(test::is_filled(back.all(), 1));
}

TEST_CASE("SwapFile: a directory that cannot be used is named", "[offload][swap_file]") {
  const test::TempDir directory;
  const fs::path missing = directory.path() / "missing";
  CHECK(creation_error(missing) ==
        "swap file in " + missing.string() + ": No such file or directory");
  const fs::path plain = directory.path() / "plain";
  std::ofstream(plain) << "x";
  CHECK(creation_error(plain) == "swap file in " + plain.string() + ": Not a directory");
  const std::string told =
      on_mount("tmpfs", directory.path(), "ro", [&] { return creation_error(directory.path()); });
  CHECK(told == "swap file in " + directory.path().string() + ": Read-only file system");
}

TEST_CASE("SwapFile: a directory without permission is named", "[offload][swap_file]") {
  const test::TempDir directory;
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const std::string told = test::in_child([&]() -> std::string {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0 && ::setresuid(nobody, nobody, nobody) != 0) return "skip: no other user";
    return creation_error(directory.path());
  });
  fs::permissions(directory.path(), fs::perms::owner_all);
  if (told.starts_with("skip")) test::skip(told);
  CHECK(told == "swap file in " + directory.path().string() + ": Permission denied");
}

TEST_CASE("SwapFile: a full disk is found before anything is written", "[offload][swap_file]") {
  const test::TempDir directory;
  const std::string told = on_mount("tmpfs", directory.path(), "size=1m", [&] {
    const SwapFile fits(directory.path(), 512 * kibibyte);
    return creation_error(directory.path(), 8 * mebibyte);
  });
  CHECK(told == "swap file in " + directory.path().string() +
                    ": 8388608 bytes (8.00 MiB) are wanted, 524288 (512 KiB) are free there: "
                    "No space left on device");
}

TEST_CASE("SwapFile: a file system without direct I/O is used through its cache",
          "[offload][swap_file]") {
  const test::TempDir directory;
  const std::string told = on_mount("ramfs", directory.path(), "", [&] {
    SwapFile file(directory.path(), mebibyte);
    const auto io = make_file_io({}, IoKind::threads).io;
    const AlignedBytes memory(mebibyte);
    test::fill(memory.all(), 1);
    io->wait(io->write(file, 0, memory.all()));
    io->wait(io->read(file, 0, memory.all()));
    return fmt::format("direct {}, read back {}", file.direct(), test::is_filled(memory.all(), 1));
  });
  CHECK(told == "direct false, read back true");
}

TEST_CASE("SwapFile: SIGKILL amid writing leaves nothing", "[offload][swap_file]") {
  const IoKind kind = GENERATE(IoKind::threads, IoKind::uring);
  const test::TempDir directory;
  const Bytes size = 8 * mebibyte;
  std::ignore = test::make_io(kind, {});  // or skips
  const std::string told = test::in_child([&]() -> std::string {
    SwapFile file(directory.path(), size);
    const auto io = test::make_io(kind, {.block_size = 64 * kibibyte});
    const AlignedBytes memory(size);
    std::ignore = io->write(file, 0, memory.all());
    ::raise(SIGKILL);
    return "alive";
  });
  CHECK(told == "killed by 9");
  CHECK(fs::is_empty(directory.path()));
}

TEST_CASE("SwapFile: a file system that cannot reserve space is written to",
          "[offload][swap_file]") {
  const test::TempDir directory;
  const std::string told = on_mount("ramfs", directory.path(), "", [&] {
    const SwapFile file(directory.path(), 3 * mebibyte);
    struct stat info {};
    ::fstat(file.fd(), &info);
    char last = 1;
    const bool reads = ::pread(file.fd(), &last, 1, info.st_size - 1) == 1 && last == 0;
    return std::to_string(info.st_size) + (reads ? " zeros" : " unreadable");
  });
  CHECK(told == "3145728 zeros");
}
