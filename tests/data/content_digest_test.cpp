// By what a run knows its data again.
#include "runtime/data/content_digest.h"

#include <fmt/format.h>

#include "runtime/data/open_samples.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t blocks = 4;

std::string digest_of(const std::string& path, const fs::path& cache) {
  const auto encoder = data::make_encoder("byte");
  return data::open_samples(path, *encoder, {.sizes = {2}, .vocabulary = 1 << 16, .cache = cache})
      ->digest();
}

/// Two records of JSON lines, of which the second is given.
std::string records(const std::string& second) {
  return fmt::format("{{\"text\": \"one two\"}}\n{{\"text\": \"{}\"}}\n", second);
}

}  // namespace

TEST_CASE("ContentDigest: small contents count to the last byte", "[data]") {
  std::vector<std::byte> bytes(blocks * data::sampled_block_bytes, std::byte{7});
  const Checksum before = data::sampled_checksum(bytes, blocks);
  const std::size_t at = GENERATE(as<std::size_t>(), 0, 99'999, 262'143);
  bytes[at] = std::byte{8};
  CHECK(data::sampled_checksum(bytes, blocks) != before);
}

TEST_CASE("ContentDigest: in large contents the ends and the size count", "[data]") {
  std::vector<std::byte> bytes(10 * data::sampled_block_bytes, std::byte{7});
  const Checksum before = data::sampled_checksum(bytes, blocks);
  for (const std::size_t at : {std::size_t{0}, bytes.size() - 1}) {
    std::vector<std::byte> other = bytes;
    other[at] = std::byte{8};
    CAPTURE(at);
    CHECK(data::sampled_checksum(other, blocks) != before);
  }
  bytes.push_back(std::byte{7});
  CHECK(data::sampled_checksum(bytes, blocks) != before);
}

TEST_CASE("ContentDigest: a rewritten range as long as the distance of blocks is noticed",
          "[data]") {
  const std::vector<std::byte> bytes(10 * data::sampled_block_bytes + 77, std::byte{7});
  const Checksum before = data::sampled_checksum(bytes, blocks);
  const std::size_t length = bytes.size() / (blocks - 1) + 1;
  const std::size_t begin = GENERATE(as<std::size_t>(), 1, 65'537, 150'000, 250'000, 400'000);
  std::vector<std::byte> other = bytes;
  std::fill_n(other.begin() + static_cast<std::ptrdiff_t>(begin), length, std::byte{8});
  CHECK(data::sampled_checksum(other, blocks) != before);
}

TEST_CASE("ContentDigest: files of every kind are known by their contents alone", "[data]") {
  const TempDir folder;
  const fs::path cache = folder.path() / "cache";
  struct Row {
    std::string name;
    std::string content;
    std::string other;  ///< of the same size
  };
  std::string tokens = counting_tokens(9);
  std::string other_tokens = tokens;
  other_tokens.back() = '\1';
  const Row row = GENERATE_COPY(Row{"a.txt", "some text", "some tent"},
                                Row{"a.jsonl", records("three"), records("seven")},
                                Row{"a.bin", tokens, other_tokens});
  CAPTURE(row.name);
  const std::string path = write_file(folder.path() / row.name, row.content);
  const std::string before = digest_of(path, cache);
  CHECK(before.size() == 16);
  fs::create_directory(folder.path() / "elsewhere");
  CHECK(digest_of(write_file(folder.path() / "elsewhere" / ("b" + row.name), row.content), cache) ==
        before);
  CHECK(digest_of(write_file(path, row.other), cache) != before);
}

TEST_CASE("ContentDigest: the order of shards counts", "[data]") {
  const TempDir folder;
  std::string other = counting_tokens(9);
  other.back() = '\1';
  write_file(folder.path() / "a0.bin", counting_tokens(9));
  write_file(folder.path() / "a1.bin", other);
  write_file(folder.path() / "b0.bin", other);
  write_file(folder.path() / "b1.bin", counting_tokens(9));
  const auto digest = [&](const char* pattern) {
    return digest_of((folder.path() / pattern).string(), folder.path());
  };
  CHECK(digest("a*.bin") != digest("b*.bin"));
  CHECK(digest("a*.bin") == digest("a[01].bin"));
}

}  // namespace dstrain::test
