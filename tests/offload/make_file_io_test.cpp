#include "offload/make_file_io.h"

#include <array>
#include <cerrno>
#include <cstddef>

#include <sys/syscall.h>

#include "offload/storage.h"
#include "offload/uring_io.h"
#include "tests/offload/io_support.h"
#include "tests/support/catch.h"
#include "tests/support/refused_calls.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::offload;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("MakeFileIo: makes the requested kind", "[offload][make_file_io]") {
  const MadeFileIo threads = make_file_io({}, IoKind::threads);
  CHECK(std::string(threads.io->name()) == "threads");
  CHECK(threads.fallback.empty());
  const MadeFileIo any = make_file_io({}, IoKind::automatic);
  CHECK(any.fallback.empty() == (std::string(any.io->name()) == "io_uring"));
}

TEST_CASE("MakeFileIo: falls back to threads if io_uring is refused", "[offload][make_file_io]") {
  const auto [error, text] = GENERATE(table<int, std::string>(
      {{EPERM, "Operation not permitted"}, {ENOSYS, "Function not implemented"}}));
  if (!make_uring_io({}).ok()) test::skip("there is no io_uring to forbid");
  const int forbidden = error;
  const std::string told = test::in_child([&]() -> std::string {
    if (!test::refuse_calls(SYS_io_uring_setup, forbidden)) return "skip: no seccomp here";
    const MadeFileIo made = make_file_io({}, IoKind::automatic);
    std::string refused;
    try {
      make_file_io({}, IoKind::uring);
    } catch (const Error& failure) {
      refused = failure.what();
    }
    return fmt::format("{}; {}; {}", made.io->name(), made.fallback, refused);
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK(told == fmt::format("threads; io_uring is refused: {0}; DSTRAIN_IO=uring: io_uring is "
                            "refused: {0}",
                            text));
}

TEST_CASE("Storage: kinds of storage are distinguished", "[offload][storage]") {
  const test::TempDir directory;
  const std::string told = test::in_child([&] {
    const std::string refused = test::mount_for_me("tmpfs", directory.path().string(), "");
    if (!refused.empty()) return refused;
    return std::string(storage_warning(storage_kind(directory.path())));
  });
  if (told.starts_with("skip")) test::skip(told);
  CHECK(told == "lies in memory: offloading to it saves none");
  CHECK(std::string(storage_warning(StorageKind::local)).empty());
  CHECK_THROWS_WITH(storage_kind(directory.path() / "missing"), ContainsSubstring("No such file"));
}
