#include <fstream>

#include "runtime/base/error.h"
#include "runtime/checkpoint/shard_writer.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"
#include "tests/support/file_limit.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;
using namespace checkpoint;

template <class Action>
ErrorCode code_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("Checksums: do not depend on how the bytes are split", "[checkpoint]") {
  std::vector<std::byte> bytes(static_cast<std::size_t>(3 * chunk_bytes + 12345));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * i >> 7);
  const std::span all(bytes);
  std::vector<Checksum> expected;
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
    expected.push_back(
        checksum_of(all.subspan(at, std::min<std::size_t>(chunk_bytes, bytes.size() - at))));
  }
  for (const std::size_t piece : {std::size_t{4097}, std::size_t{chunk_bytes}, bytes.size()}) {
    ChunkHasher hasher;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      hasher.add(all.subspan(at, std::min(piece, bytes.size() - at)));
    }
    CHECK(hasher.finish() == expected);
  }
  CHECK(ChunkHasher().finish().empty());
}

TEST_CASE("Checksums: are those of the XXH3 specification", "[checkpoint]") {
  CHECK(to_text(checksum_of({})) == "2d06800538d394c2");
}

TEST_CASE("Shard writer: the record is that of the file", "[checkpoint]") {
  const TempDir root;
  std::vector<float> values(400'000, 1.5F);
  const ShardTensor tensor{"fp32.w", {std::span(values), {400'000}}};
  int moves = 0;  // of a file that the page cache takes at once
  const FileRecord written =
      write_shard(root.path(), "s", std::span(&tensor, 1), [&moves] { ++moves; });
  CHECK(moves >= 2);
  const FileRecord read = record_file(root.path(), "s");
  CHECK(written.path == "s");
  CHECK(written.bytes == static_cast<Bytes>(fs::file_size(root.path() / "s")));
  CHECK(written.chunks.size() == 2);
  CHECK(read.bytes == written.bytes);
  CHECK(read.chunks == written.chunks);
  CHECK(write_text(root.path(), "empty", "").chunks.empty());
  CHECK((fs::status(root.path() / "s").permissions() & fs::perms::others_write) == fs::perms::none);
}

TEST_CASE("Shard writer: an existing file is not touched", "[checkpoint]") {
  const TempDir root;
  write_text(root.path(), "there", "old");
  fs::create_symlink("elsewhere", root.path() / "link");
  CHECK(code_of([&] { write_text(root.path(), "there", "new"); }) == ErrorCode::io);
  CHECK(code_of([&] { write_text(root.path(), "link", "new"); }) == ErrorCode::io);
  CHECK(code_of([&] { write_text(root.path(), "no/folder", "new"); }) == ErrorCode::io);
  CHECK(code_of([&] { record_file(root.path(), "missing"); }) == ErrorCode::io);
  CHECK(fs::file_size(root.path() / "there") == 3);
  CHECK_FALSE(fs::exists(root.path() / "elsewhere"));
}

TEST_CASE("Shard writer: a full disk leaves no file", "[checkpoint]") {
  const TempDir root;
  {
    const test::FileLimit limit(4096);
    CHECK(code_of([&] { write_text(root.path(), "s", std::string(5000, 'x')); }) == ErrorCode::io);
  }
  CHECK(fs::is_empty(root.path()));
}

}  // namespace dstrain::test
