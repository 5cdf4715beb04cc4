#include "runtime/data/token_cache.h"

#include <fstream>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using data::TokenSet;
using data::TokenSetWriter;
using Ids = std::vector<std::int32_t>;

Ids ids_of(const TokenSet& set) {
  Ids ids(static_cast<std::size_t>(set.ids().size()));
  set.ids().read(0, ids, 1LL << 31, "set");
  return ids;
}

void write_small_set(const fs::path& path) {
  TokenSetWriter writer(path, data::RecordKind::completion, 1000);
  writer.add({{1, 2, 999}, {{1, 2}}});
  writer.add({{}, {}});
  writer.add({Ids(70, 7), {{0, 1}, {60, 70}}});
  writer.finish();
}

TokenSet cached(const fs::path& directory, int* made = nullptr) {
  return data::cached_tokens(directory, "key", [&](const fs::path& path) {
    if (made != nullptr) ++*made;
    write_small_set(path);
  });
}

std::size_t files_in(const fs::path& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& item : fs::directory_iterator(directory)) ++count;
  return count;
}

std::string key_of(std::string_view content, std::string_view method) {
  return data::token_key(std::as_bytes(std::span(content)), method);
}

}  // namespace

TEST_CASE("TokenSet: what was written is read", "[data][cache]") {
  const TempDir directory;
  const fs::path path = directory.path() / "s";
  write_small_set(path);
  const auto opened = TokenSet::open(path);
  REQUIRE(opened.ok());
  const TokenSet& set = opened.value();
  CHECK(set.kind() == data::RecordKind::completion);
  REQUIRE(set.records() == 3);
  CHECK(set.start(1) == 3);
  CHECK(set.start(2) == 3);
  CHECK(set.start(3) == 73);
  Ids expected{1, 2, 999};
  expected.resize(73, 7);
  CHECK(ids_of(set) == expected);
  for (std::int64_t t = 0; t < 73; ++t) {
    CAPTURE(t);
    CHECK(set.counts(t) == (t == 1 || t == 3 || t >= 63));
  }
}

TEST_CASE("TokenSet: ids take as many bytes as the vocabulary needs", "[data][cache]") {
  const TempDir directory;
  const std::int64_t vocabulary = GENERATE(256, 257, 65536, 65537, 200'000);
  CAPTURE(vocabulary);
  TokenSetWriter writer(directory.path() / "s", data::RecordKind::text, vocabulary);
  const auto largest = static_cast<std::int32_t>(vocabulary - 1);
  writer.add({{0, largest}, {}});
  writer.finish();
  const auto set = TokenSet::open(directory.path() / "s");
  REQUIRE(set.ok());
  CHECK(ids_of(set.value()) == Ids{0, largest});
  CHECK(set.value().counts(0));
}

TEST_CASE("TokenSet: any damage is found", "[data][cache]") {
  const TempDir directory;
  const std::string path = (directory.path() / "s").string();
  write_small_set(path);
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x40);
    write_file(path, bad);
    CAPTURE(at);
    CHECK_FALSE(TokenSet::open(path).ok());
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{39}, good.size() - 1}) {
    write_file(path, good.substr(0, size));
    CAPTURE(size);
    CHECK_FALSE(TokenSet::open(path).ok());
  }
  write_file(path, good + "x");
  CHECK_FALSE(TokenSet::open(path).ok());
}

TEST_CASE("TokenCache: a set is made once", "[data][cache]") {
  const TempDir directory;
  const fs::path folder = directory.path() / "a" / "b";
  int made = 0;
  CHECK(cached(folder, &made).records() == 3);
  CHECK(cached(folder, &made).records() == 3);
  CHECK(made == 1);
  CHECK(files_in(folder) == 2);  // the set and its lock
}

TEST_CASE("TokenCache: a damaged set is made again", "[data][cache]") {
  const TempDir directory;
  int made = 0;
  cached(directory.path(), &made);
  write_file(directory.path() / "key.tokens", "DSTRTOKS and no more");
  CHECK(cached(directory.path(), &made).records() == 3);
  CHECK(made == 2);
}

TEST_CASE("TokenCache: a failed process leaves nothing", "[data][cache]") {
  const TempDir directory;
  CHECK(error_of([&] {
          data::cached_tokens(directory.path(), "key", [](const fs::path& path) {
            write_small_set(path);
            fail(ErrorCode::input, "line 3");
          });
        }) == "line 3");
  CHECK(files_in(directory.path()) == 1);  // the lock
  CHECK(cached(directory.path()).records() == 3);
}

TEST_CASE("TokenCache: a directory without room is named with what to do", "[data][cache]") {
  const TempDir directory;
  const auto full = [](const fs::path& path) {
    fail_errno(ENOSPC, path.filename().string().substr(0, 3));
  };
  CHECK(error_of([&] { data::cached_tokens(directory.path(), "key", full); }) ==
        "key: No space left on device; set DSTRAIN_CACHE to a directory with room for tokens");
}

TEST_CASE("TokenCache: processes that want a set at once make it once", "[data][cache]") {
  const TempDir directory;
  const fs::path log = directory.path() / "made";
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      int made = 0;
      const bool whole = cached(directory.path(), &made).records() == 3;
      if (made > 0) std::ofstream(log, std::ios::app) << "x";
      ::_exit(whole ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(fs::file_size(log) == 1);
}

TEST_CASE("TokenCache: a place that cannot be used is named", "[data][cache]") {
  const TempDir directory;
  const std::string path = write_file(directory.path() / "file", "x");
  CHECK_THAT(error_of([&] { cached(path); }),
             Catch::Matchers::ContainsSubstring(path) &&
                 Catch::Matchers::ContainsSubstring("set DSTRAIN_CACHE to a directory for tokens"));
}

TEST_CASE("TokenCache: the key depends on content and method", "[data][cache]") {
  const std::string key = key_of("abc", "text byte");
  CHECK(key.size() == 64);
  CHECK(key == key_of("abc", "text byte"));
  CHECK(key != key_of("abd", "text byte"));
  CHECK(key != key_of("abc", "json byte"));
  CHECK(key != key_of("", "text byte"));
  std::string large(20 << 20, 'a');
  const std::string before = key_of(large, "m");
  large[(20 << 20) - 1] = 'b';
  CHECK(key_of(large, "m") != before);
}

}  // namespace dstrain::test
