// What others may have put where a file of ours is to be. Owners are changed, which needs root.
#include "runtime/os/shared_place.h"

#include <fstream>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::error_of;
namespace fs = std::filesystem;

namespace {

constexpr uid_t stranger = 54'321;

/// False where this is not for us to do.
bool give_away(const fs::path& path) {
  return ::lchown(path.c_str(), stranger, stranger) == 0;
}

}  // namespace

TEST_CASE("Shared place: another user's link is refused", "[base][shared]") {
  const test::TempDir folder;
  const fs::path path = folder.path() / "link";
  CHECK_NOTHROW(refuse_foreign_link(path));
  write_text_file(folder.path() / "own", "x");
  fs::create_symlink("own", path);
  CHECK(read_trusted_text(path, mebibyte) == "x");
  if (give_away(path)) {
    CHECK_THAT(error_of([&] { read_trusted_text(path, mebibyte); }),
               ContainsSubstring("a symbolic link of uid 54321") && ContainsSubstring("remove it"));
    CHECK_THAT(error_of([&] { refuse_foreign_link(path); }), ContainsSubstring(path.string()));
  }
}

TEST_CASE("Shared place: another user's link is refused anywhere in a path", "[base][shared]") {
  const test::TempDir folder;
  const fs::path& top = folder.path();
  fs::create_directories(top / "target" / "deep");
  fs::create_directory_symlink("target", top / "link");
  fs::create_directory_symlink(top / "link" / "deep", top / "own");
  const fs::path path = top / GENERATE(as<std::string>{}, "link/sub", "link/deep/sub/more",
                                       "target/../link/deep/sub", "own/sub", "link/");
  CAPTURE(path.string());
  CHECK_NOTHROW(refuse_foreign_link(path));
  if (give_away(top / "link")) {
    CHECK_THAT(error_of([&] { static_cast<void>(make_directories(path)); }),
               ContainsSubstring("link is a symbolic link of uid 54321"));
    CHECK_FALSE(fs::exists(top / "target" / "sub"));
    CHECK_FALSE(fs::exists(top / "target" / "deep" / "sub"));
  }
}

TEST_CASE("Shared place: a cycle of links does not hang", "[base][shared]") {
  const test::TempDir folder;
  fs::create_directory_symlink("b", folder.path() / "a");
  fs::create_directory_symlink("a", folder.path() / "b");
  CHECK_NOTHROW(refuse_foreign_link(folder.path() / "a" / "sub"));
}

TEST_CASE("Shared place: only a file is appended to", "[base][shared]") {
  const test::TempDir folder;
  const fs::path path = folder.path() / "log";
  const auto append = [&](Content content) {
    const UniqueFd fd = open_to_append(path, content);
    write_fully(fd.get(), std::as_bytes(std::span("x", 1)), "log");
  };
  append(Content::keep);
  append(Content::keep);
  CHECK(read_text_file(path, mebibyte) == "xx");
  append(Content::drop);
  CHECK(read_text_file(path, mebibyte) == "x");

  fs::rename(path, folder.path() / "other");
  fs::create_symlink("other", path);
  CHECK_THAT(error_of([&] { append(Content::drop); }),
             ContainsSubstring(path.string()) &&
                 ContainsSubstring("a symbolic link, which is not followed"));
  CHECK_THAT(error_of([&] { open_to_read(path); }), ContainsSubstring("a symbolic link"));
  CHECK(read_text_file(folder.path() / "other", mebibyte) == "x");

  // Of a FIFO with a reader and without.
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THAT(error_of([&] { append(Content::keep); }), ContainsSubstring("not a regular file"));
  const UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK));
  CHECK_THAT(error_of([&] { append(Content::keep); }), ContainsSubstring("not a regular file"));
}

TEST_CASE("Shared place: a temporary file follows no link and is our own", "[base][shared]") {
  const test::TempDir folder;
  const fs::path path = folder.path() / "text";
  const fs::path victim = folder.path() / "victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, path.string() + ".tmp");
  write_text_file(path, "new");
  CHECK(read_text_file(path, mebibyte) == "new");
  CHECK(read_text_file(victim, mebibyte) == "precious");
  CHECK_FALSE(fs::is_symlink(path));
  // A name that cannot be taken is no obstacle.
  fs::create_directory(path.string() + ".tmp");
  write_text_file(path, "newer");
  CHECK(read_text_file(path, mebibyte) == "newer");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 3);
}

TEST_CASE("Shared place: a removed file is noticed", "[base][shared]") {
  const test::TempDir folder;
  const fs::path path = folder.path() / "inner/file";
  fs::create_directory(path.parent_path());
  const UniqueFd fd = open_to_append(path, Content::keep);
  CHECK(is_file_at(fd.get(), path));
  fs::remove_all(path.parent_path());
  CHECK_FALSE(is_file_at(fd.get(), path));
  fs::create_directory(path.parent_path());
  const UniqueFd another = open_to_append(path, Content::keep);
  CHECK_FALSE(is_file_at(fd.get(), path));
  CHECK(is_file_at(another.get(), path));
}

TEST_CASE("Shared place: files that decide what runs must not belong to another user",
          "[base][shared]") {
  const test::TempDir folder;
  const fs::path path = folder.path() / "env";
  write_text_file(path, "A=1");
  CHECK(read_trusted_text(path, 3) == "A=1");
  CHECK_THAT(error_of([&] { read_trusted_text(path, 2); }), ContainsSubstring("more than"));
  for (const mode_t mode : {0664U, 0646U}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    CHECK_THAT(error_of([&] { read_trusted_text(path, 3); }),
               ContainsSubstring(path.string()) && ContainsSubstring("is writable by others") &&
                   ContainsSubstring("chmod go-w"));
  }
  REQUIRE(::chmod(path.c_str(), 0644) == 0);
  CHECK(other_owner(path).empty());
  if (give_away(path)) {
    CHECK(other_owner(path) == "uid 54321");
    CHECK_THAT(error_of([&] { read_trusted_text(path, 3); }),
               ContainsSubstring(path.string()) && ContainsSubstring("belongs to uid 54321"));
  }
  fs::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THAT(error_of([&] { read_trusted_text(path, 3); }), ContainsSubstring(path.string()));
}

TEST_CASE("Own directory: gets the usual name if it is free or ours", "[base][shared]") {
  const test::TempDir folder;
  CHECK(own_directories(folder.path(), "d").empty());
  CHECK(own_directory(folder.path(), "d") == folder.path() / "d");
  CHECK(own_directory(folder.path(), "d") == folder.path() / "d");
  struct stat info {};
  REQUIRE(::stat((folder.path() / "d").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700);
  CHECK(own_directories(folder.path(), "d") == std::vector<fs::path>{folder.path() / "d"});
}

TEST_CASE("Own directory: gets another name if another user owns the usual one", "[base][shared]") {
  const test::TempDir folder;
  const fs::path usual = folder.path() / "d";
  fs::create_directory(usual);
  if (!give_away(usual)) ::chmod(usual.c_str(), 0777);
  fs::create_directory(folder.path() / "d-open");
  ::chmod((folder.path() / "d-open").c_str(), 0777);
  fs::create_directory_symlink("d", folder.path() / "d-link");
  fs::create_directory(folder.path() / "do");
  const fs::path made = own_directory(folder.path(), "d");
  CHECK(made.string().starts_with(usual.string() + "-"));
  CHECK(own_directory(folder.path(), "d") == made);
  CHECK(own_directories(folder.path(), "d") == std::vector<fs::path>{made});
}
