// Directories of one user where others may have taken their names. Owners are changed, which needs
// root; elsewhere a directory that is open to others stands for another user's.
#include "runtime/base/own_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
namespace fs = std::filesystem;

TEST_CASE("Own directory: the usual name where it is free or ours", "[base][shared]") {
  const test::TempDir folder;
  CHECK(own_directories(folder.path(), "d").empty());
  CHECK(own_directory(folder.path(), "d") == folder.path() / "d");
  CHECK(own_directory(folder.path(), "d") == folder.path() / "d");
  struct stat info {};
  REQUIRE(::stat((folder.path() / "d").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700);
  CHECK(own_directories(folder.path(), "d") == std::vector<fs::path>{folder.path() / "d"});
}

TEST_CASE("Own directory: another name where somebody else has the usual one", "[base][shared]") {
  const test::TempDir folder;
  const fs::path usual = folder.path() / "d";
  fs::create_directory(usual);
  if (::chown(usual.c_str(), 54'321, 54'321) != 0) ::chmod(usual.c_str(), 0777);
  fs::create_directory(folder.path() / "d-open");
  ::chmod((folder.path() / "d-open").c_str(), 0777);
  fs::create_directory_symlink("d", folder.path() / "d-link");
  fs::create_directory(folder.path() / "do");
  const fs::path made = own_directory(folder.path(), "d");
  CHECK(made.string().starts_with(usual.string() + "-"));
  CHECK(own_directory(folder.path(), "d") == made);
  CHECK(own_directories(folder.path(), "d") == std::vector<fs::path>{made});
}
