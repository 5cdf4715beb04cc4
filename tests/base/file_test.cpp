#include "runtime/os/file.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include <sys/stat.h>

#include "runtime/os/fd_io.h"
#include "tests/support/catch.h"
#include "tests/support/child_process.h"
#include "tests/support/file_limit.h"
#include "tests/support/refused_calls.h"
#include "tests/support/temp_dir.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The message of the Error that `action` throws; its code must be `code`.
template <class Action>
std::string message_of(ErrorCode code, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("File: a text comes back as it was written", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "text";
  const std::string text = GENERATE(std::string(), std::string("one line\n"),
                                    std::string("zero \0 byte", 11), std::string(300'000, 'x'));
  write_text_file(path, text);
  CHECK(contents(path) == text);
  CHECK(read_text_file(path, 300'000) == text);
}

TEST_CASE("File: a text over the limit is not read", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "big";
  write_text_file(path, std::string(2048, 'x'));
  CHECK(message_of(ErrorCode::input, [&] { (void)read_text_file(path, 2047); }) ==
        path.string() + ": 2.00 KiB is more than the 2.00 KiB allowed for such a file");
  CHECK(read_text_file(path, 2048).size() == 2048);
}

TEST_CASE("File: a Git LFS pointer is distinguished from the file", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "model.safetensors";
  write_text_file(path,
                  "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n");
  CHECK(message_of(ErrorCode::input, [&] { (void)open_regular(path); }) ==
        path.string() +
            ": is a pointer of Git LFS, not the file itself; in its repository: git lfs pull");
}

TEST_CASE("File: a path that is not a regular file is refused by name", "[base][file]") {
  const test::TempDir dir;
  REQUIRE(::mkfifo((dir.path() / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("missing", dir.path() / "dangling");
  const auto [name, reason] = GENERATE(table<const char*, const char*>(
      {{"fifo", "not a regular file"},  // and opening it must not wait for a writer
       {"", "not a regular file"},
       {"/dev/zero", "not a regular file"},
       {"missing", "No such file or directory"},
       {"dangling", "a symbolic link to missing, which is not there"}}));
  const fs::path path = dir.path() / name;
  const std::string expected = path.string() + ": " + reason;
  CHECK(message_of(ErrorCode::input, [&] { (void)read_text_file(path, mebibyte); }) == expected);
  CHECK(message_of(ErrorCode::input, [&] { (void)open_regular(path); }) == expected);
}

TEST_CASE("File: writing replaces the old text and leaves no other file", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "text";
  write_text_file(path, "old and long");
  write_text_file(path, "new");
  CHECK(contents(path) == "new");
  CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("File: a reader holds the old text while a new one is written", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "text";
  write_text_file(path, "old");
  std::ifstream reader(path);
  write_text_file(path, "new");
  CHECK(std::string(std::istreambuf_iterator<char>(reader), {}) == "old");
}

TEST_CASE("File: a write that fails says where and leaves nothing", "[base][file]") {
  const test::TempDir dir;
  const fs::path no_folder = dir.path() / "missing" / "text";
  CHECK(message_of(ErrorCode::io, [&] { write_text_file(no_folder, "x"); }) ==
        "create " + no_folder.string() + ".tmp: No such file or directory");

  const fs::path folder = dir.path() / "folder";
  fs::create_directory(folder);
  CHECK(message_of(ErrorCode::io, [&] { write_text_file(folder, "x"); }) ==
        "rename to " + folder.string() + ": Is a directory");
  CHECK(std::distance(fs::directory_iterator(dir.path()), {}) == 1);
}

TEST_CASE("File: a file system that flushes no directories is no error", "[base][file]") {
  const test::TempDir folder;
  const auto flush = [&](int error, bool file) {
    return test::in_child([&]() -> std::string {
      if (!test::refuse_calls(SYS_fsync, error)) return "no filter";
      if (!file) flush_directory(folder.path());
      if (file) flush_file(STDIN_FILENO, "file");
      return "";
    });
  };
  CHECK(flush(EINVAL, false) == "");
  CHECK(flush(ENOTSUP, false) == "");
  CHECK_THAT(flush(EIO, false), Catch::Matchers::StartsWith("threw: fsync "));
  CHECK(flush(EINVAL, true) == "threw: fsync file: Invalid argument");
}

TEST_CASE("File: a full disk is an error", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "text";
  const std::string message = [&] {
    const test::FileLimit none(0);
    return message_of(ErrorCode::io, [&] { write_text_file(path, "x"); });
  }();
  CHECK(message == "write " + path.string() + ".tmp: File too large");
  CHECK(fs::is_empty(dir.path()));
}

}  // namespace dstrain
