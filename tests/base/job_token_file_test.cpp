#include "runtime/rank/job_token_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>

#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/rank/worker_env.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("JobTokenFile: one makes it and the others find it", "[base]") {
  const TokenDirectory directory;
  const std::string job = "cluster-17.0-";
  const fs::path path = token_path(job);
  auto waiting =
      std::async(std::launch::async, [&] { return JobTokenFile::wait_for(job, 240).token(); });
  {
    const JobTokenFile file = JobTokenFile::create(job);
    CHECK(file.token().size() == 32);
    CHECK(waiting.get() == file.token());
    CHECK(permissions(path) == (fs::perms::owner_read | fs::perms::owner_write));
    CHECK(permissions(path.parent_path()) == fs::perms::owner_all);
    CHECK(JobTokenFile::create(job).token() != file.token());
  }
  CHECK(fs::is_empty(path.parent_path()));
}

TEST_CASE("JobTokenFile: a file that others can write or read is refused", "[base]") {
  const TokenDirectory directory;
  const fs::path path = token_path("a/b");
  CHECK(path.filename() == "a_b.token");
  const JobTokenFile file = JobTokenFile::create("a/b");
  const fs::path subject = GENERATE(true, false) ? path : path.parent_path();
  fs::permissions(subject, fs::perms::group_read, fs::perm_options::add);
  CHECK_THROWS_WITH(JobTokenFile::wait_for("a/b", 240),
                    ContainsSubstring("chmod go= " + subject.string()));
  if (subject != path) {
    CHECK_THROWS_WITH(JobTokenFile::create("a/b"),
                      ContainsSubstring("chmod go= " + subject.string()));
  }
}

TEST_CASE("JobTokenFile: links and partial tokens are refused", "[base]") {
  const TokenDirectory directory;
  const fs::path path = token_path("job");
  fs::create_directory(path.parent_path());
  fs::permissions(path.parent_path(), fs::perms::owner_all);
  SECTION("link") {
    fs::create_symlink("/etc/hostname", path);
    CHECK_THROWS_WITH(JobTokenFile::wait_for("job", 240), ContainsSubstring(path.string()));
  }
  SECTION("half") {
    std::ofstream(path) << "half";
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
    CHECK_THROWS_WITH(JobTokenFile::wait_for("job", 0.1),
                      ContainsSubstring("did not appear") && ContainsSubstring("DSTRAIN_TOKEN"));
  }
}

}  // namespace
}  // namespace dstrain
