#include "runtime/base/token_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "runtime/base/error.h"
#include "runtime/base/worker_env.h"
#include "tests/support/temp_dir.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// A directory for tokens, for a scope.
struct TokenDirectory {
  TokenDirectory() { ::setenv(env::token_directory, (parent.path() / "tokens").c_str(), 1); }
  TokenDirectory(const TokenDirectory&) = delete;
  TokenDirectory& operator=(const TokenDirectory&) = delete;
  TokenDirectory(TokenDirectory&&) = delete;
  TokenDirectory& operator=(TokenDirectory&&) = delete;
  ~TokenDirectory() { ::unsetenv(env::token_directory); }
  test::TempDir parent;
};

fs::perms permissions(const fs::path& path) {
  return fs::status(path).permissions();
}

TEST_CASE("TokenFile: one makes it and the others find it", "[base]") {
  const TokenDirectory directory;
  const TokenFile file("cluster-17.0-");
  auto waiting = std::async(std::launch::async, [&] { return file.wait(240); });
  const std::string token = file.create();
  CHECK(token.size() == 32);
  CHECK(waiting.get() == token);
  CHECK(permissions(file.path()) == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(permissions(file.path().parent_path()) == fs::perms::owner_all);
  CHECK(file.create() != token);
  file.remove();
  CHECK_FALSE(fs::exists(file.path()));
  CHECK(fs::is_empty(file.path().parent_path()));
}

TEST_CASE("TokenFile: what others could have written or read is refused", "[base]") {
  const TokenDirectory directory;
  const TokenFile file("a/b");
  CHECK(file.path().filename() == "a_b.token");
  static_cast<void>(file.create());
  const fs::path subject = GENERATE(true, false) ? file.path() : file.path().parent_path();
  fs::permissions(subject, fs::perms::group_read, fs::perm_options::add);
  if (subject == file.path()) {
    CHECK_THROWS_WITH(file.wait(240), Contains("chmod go= " + subject.string()));
  } else {
    CHECK_THROWS_WITH(file.create(), Contains("chmod go= " + subject.string()));
  }
}

TEST_CASE("TokenFile: a link is not followed and half a token is none", "[base]") {
  const TokenDirectory directory;
  const TokenFile file("job");
  fs::create_directory(file.path().parent_path());
  fs::permissions(file.path().parent_path(), fs::perms::owner_all);
  SECTION("link") {
    fs::create_symlink("/etc/hostname", file.path());
    CHECK_THROWS_WITH(file.wait(240), Contains(file.path().string()));
  }
  SECTION("half") {
    std::ofstream(file.path()) << "half";
    fs::permissions(file.path(), fs::perms::owner_read | fs::perms::owner_write);
    CHECK_THROWS_WITH(file.wait(0.1), Contains("did not appear") && Contains("DSTRAIN_TOKEN"));
  }
}

}  // namespace
}  // namespace dstrain
