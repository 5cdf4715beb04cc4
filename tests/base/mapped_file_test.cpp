#include "runtime/os/mapped_file.h"

#include <array>
#include <fstream>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/os/file.h"
#include "runtime/rank/worker_env.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

}  // namespace

TEST_CASE("MappedFile: shows the file and moves", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "bytes";
  write_text_file(path, "abc");
  MappedFile map(path);
  REQUIRE(map.bytes().size() == 3);
  CHECK(map.bytes()[2] == std::byte{'c'});

  MappedFile moved(std::move(map));
  CHECK(moved.bytes().size() == 3);
  write_text_file(path, "defg");
  moved = MappedFile(path);
  REQUIRE(moved.bytes().size() == 4);
  CHECK(moved.bytes()[0] == std::byte{'d'});
}

TEST_CASE("MappedFile: an empty file is refused", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "empty";
  write_text_file(path, "");
  CHECK_THROWS_WITH(MappedFile(path), path.string() + ": the file is empty");
}

TEST_CASE("MappedFile: a file that was cut short is refused by name", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "bytes";
  write_text_file(path, "abcdef");
  const MappedFile map(path);
  check_mapped_files();
  fs::resize_file(path, 2);
  CHECK_THROWS_WITH(check_mapped_files(),
                    path.string() + ": was cut from 6 to 2 bytes while it was read");
}

TEST_CASE("MappedFile: replacing the file does not affect the mapping", "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "bytes";
  write_text_file(path, "abcdef");
  const MappedFile map(path);
  write_text_file(path, "a");
  check_mapped_files();
  fs::remove(path);
  check_mapped_files();
  CHECK(map.text() == "abcdef");
}

TEST_CASE("MappedFile: reading a truncated part ends the process with the file's name",
          "[base][file]") {
  const test::TempDir dir;
  const fs::path path = dir.path() / "bytes";
  write_text_file(path, std::string(10'000, 'x'));
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    name_shortened_files();
    const MappedFile map(path);
    fs::resize_file(path, 0);
    ::_exit(map.text()[9'000] == 'x' ? 7 : 8);
  }
  ::close(ends[1]);
  std::string said;  // in pieces
  std::array<char, 1000> piece{};
  for (ssize_t bytes = 0; (bytes = ::read(ends[0], piece.data(), piece.size())) > 0;) {
    said.append(piece.data(), static_cast<std::size_t>(bytes));
  }
  ::close(ends[0]);
  int ended = 0;
  REQUIRE(::waitpid(pid, &ended, 0) == pid);
  CHECK(WIFEXITED(ended));
  CHECK(WEXITSTATUS(ended) == status::failed);
  CHECK(said == "dstrain: error: " + path.string() + ": was cut short while it was read\n");
}

}  // namespace dstrain
