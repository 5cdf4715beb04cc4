#include "runtime/preprocess/byte_source.h"

#include <random>

#include <zlib.h>
#include <zstd.h>

#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::preprocess {
namespace {

std::string gzip(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string pack(const std::string& text, Compression compression) {
  switch (compression) {
    case Compression::gzip:
      return gzip(text);
    case Compression::zstd:
      return zstd(text);
    case Compression::none:
      return text;
  }
  return {};
}

std::string some_text(std::size_t size) {
  std::mt19937 random(7);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>('a' + random() % 8);
  return text;
}

std::string read_all(const InputFile& file, std::size_t at_once, std::int64_t skipped) {
  const auto source = open_bytes(file);
  source->skip(skipped);
  std::string text;
  for (std::string block(at_once, '\0'); block.size() == at_once; text += block) {
    block.resize(source->read(block));
  }
  return text;
}

}  // namespace

TEST_CASE("ByteSource: gives the decompressed data from any offset", "[preprocess][bytes]") {
  const test::TempDir dir;
  const auto compression = GENERATE(Compression::none, Compression::gzip, Compression::zstd);
  const auto size = GENERATE(as<std::size_t>(), 1, 4096, 700'001);
  const std::string text = some_text(size);
  const std::string half = text.substr(0, size / 2);
  const std::string packed =
      size < 2 ? pack(text, compression)
               : pack(half, compression) + pack(text.substr(size / 2), compression);
  const InputFile file{.path = test::write_file(dir.path() / "t", packed),
                       .compression = compression};
  for (const std::size_t at_once : {std::size_t{1000}, std::size_t{1} << 20}) {
    CHECK(read_all(file, at_once, 0) == text);
    CHECK(read_all(file, at_once, static_cast<std::int64_t>(size / 3)) == text.substr(size / 3));
  }
}

TEST_CASE("ByteSource: compressed data that are cut short or damaged are refused",
          "[preprocess][bytes]") {
  const test::TempDir dir;
  const auto compression = GENERATE(Compression::gzip, Compression::zstd);
  const std::string packed = pack(some_text(100'000), compression);
  const auto error = [&](const std::string& bytes) {
    const InputFile file{.path = test::write_file(dir.path() / "t", bytes),
                         .compression = compression};
    return test::error_of([&] { read_all(file, 1 << 16, 0); });
  };
  CHECK_THAT(error(packed.substr(0, packed.size() / 2)),
             Catch::Matchers::ContainsSubstring("end too early"));
  CHECK_THAT(error(packed.substr(0, packed.size() - 1)),
             Catch::Matchers::ContainsSubstring("end too early"));
  CHECK_THAT(error(""), Catch::Matchers::ContainsSubstring("end too early"));
  CHECK_THAT(error("no such thing"), Catch::Matchers::ContainsSubstring("are damaged"));
  std::string broken = packed;
  for (std::size_t i = packed.size() / 2; i < packed.size() / 2 + 64; ++i) broken[i] ^= 0x55;
  CHECK_THAT(error(broken), Catch::Matchers::ContainsSubstring("are damaged"));
}

}  // namespace dstrain::preprocess
