#include "runtime/data/token_file.h"

#include "runtime/data/tokenizer.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using data::TokenFile;
using Ids = std::vector<std::int32_t>;

Ids read_all(const TokenFile& stream) {
  Ids tokens(static_cast<std::size_t>(stream.size()));
  stream.read(0, tokens);
  return tokens;
}

class Files {
 public:
  std::string add(const std::string& name, const std::string& bytes) {
    return write_file(directory_.path() / name, bytes);
  }
  /// What opening and reading a file of these bytes complains of, without the directory.
  std::string error(const std::string& name, const std::string& bytes, std::int64_t vocabulary) {
    const std::string path = add(name, bytes);
    const std::string message = error_of([&] { read_all(TokenFile(path, vocabulary)); });
    return message.empty() ? "" : message.substr(path.size() - name.size());
  }
  const TempDir& directory() const { return directory_; }

 private:
  TempDir directory_;
};

}  // namespace

TEST_CASE("TokenFile: text is read as bytes", "[data][tokens]") {
  Files files;
  const TokenFile stream(files.add("t.txt", "A\xC3\xA9\n"), 256);
  CHECK(stream.size() == 4);
  CHECK(read_all(stream) == Ids{65, 0xC3, 0xA9, 10});
  Ids middle(2);
  stream.read(1, middle);
  CHECK(middle == Ids{0xC3, 0xA9});
}

TEST_CASE("TokenFile: both llm.c widths are read", "[data][tokens]") {
  Files files;
  const TokenFile narrow(
      files.add("n.bin", token_bytes<std::uint16_t>({.count = 3}, {5, 0, 50256})), 50257);
  CHECK(read_all(narrow) == Ids{5, 0, 50256});
  const TokenFile wide(
      files.add("w.bin", token_bytes<std::uint32_t>({.magic = 20240801, .version = 7, .count = 2},
                                                    {128255, 1})),
      128256);
  CHECK(read_all(wide) == Ids{128255, 1});
}

TEST_CASE("TokenFile: a broken llm.c file is refused", "[data][tokens]") {
  Files files;
  const auto error = [&](const TokenHeader& header, const std::vector<std::uint16_t>& ids) {
    return files.error("t.bin", token_bytes(header, ids), 100);
  };
  CHECK(error({.count = 2}, {1, 2}) == "");
  CHECK(error({.magic = 1'000'000'007, .count = 2}, {1, 2}) ==
        "t.bin: unknown magic 1000000007; a .bin token file starts with 20240520 (u16 ids) or "
        "20240801 (u32 "
        "ids)");
  CHECK(error({.magic = 20240326, .count = 2}, {1, 2}) ==
        "t.bin: this is a model of llm.c, not a token file");
  CHECK(error({.version = 2, .count = 2}, {1, 2}) ==
        "t.bin: version 2 of magic 20240520 is unknown; expected 1");
  CHECK(error({.magic = 20240801, .version = 1, .count = 1}, {1, 2}) ==
        "t.bin: version 1 of magic 20240801 is unknown; expected 7");
  CHECK(error({.count = 3}, {1, 2}) ==
        "t.bin: the header claims 3 tokens of 2 bytes, but the file has 1028 bytes");
  CHECK(error({.count = 1}, {1, 2}) ==
        "t.bin: the header claims 1 tokens of 2 bytes, but the file has 1028 bytes");
  CHECK(error({.count = -1}, {1, 2}) ==
        "t.bin: the header claims -1 tokens of 2 bytes, but the file has 1028 bytes");
  CHECK(error({.count = 2147483647}, {1, 2}) ==
        "t.bin: the header claims 2147483647 tokens of 2 bytes, but the file has 1028 bytes");
  CHECK(error({.count = 0}, {}) == "t.bin: holds no tokens");
  CHECK(files.error("t.bin", token_bytes<std::uint16_t>({}, {}).substr(0, 1023), 100) ==
        "t.bin: 1023 bytes are too few for the header of a token file");
  CHECK(files.error("t.bin", "", 100) == "t.bin: the file is empty");
  CHECK_THAT(files.error("t.bin", "abc", 100),
             Catch::Matchers::StartsWith("t.bin: unknown magic 0"));
}

TEST_CASE("TokenFile: raw ids are told with the way to a header", "[data][tokens]") {
  Files files;
  std::string raw;
  for (const char id : {'\5', '\143', '\7'}) raw += {id, '\0'};
  CHECK_THAT(files.error("train.bin", raw, 100),
             Catch::Matchers::StartsWith("train.bin: has no header; if it holds u16 ids, as "
                                         "nanoGPT's does") &&
                 Catch::Matchers::ContainsSubstring("struct.pack('<3i', 20240520, 1, ") &&
                 Catch::Matchers::ContainsSubstring("; cat ") &&
                 Catch::Matchers::EndsWith("train-llmc.bin"));
  CHECK_THAT(files.error("train.bin", raw, 99), Catch::Matchers::StartsWith("train.bin: unknown"));
  CHECK_THAT(
      files.error("x_text_document.bin", raw, 100),
      Catch::Matchers::StartsWith("x_text_document.bin: is named as the ids of a Megatron "
                                  "set, and its index ") &&
          Catch::Matchers::EndsWith("/x_text_document.idx is missing beside it; copy both files"));
}

TEST_CASE("TokenFile: an id beyond the vocabulary is named with its position", "[data][tokens]") {
  Files files;
  CHECK(files.error("t.bin", token_bytes<std::uint16_t>({.count = 4}, {1, 99, 100, 3}), 100) ==
        "t.bin: token 2 is 100, but the model's vocabulary ends at 99");
  CHECK(files.error("t.bin",
                    token_bytes<std::uint32_t>({.magic = 20240801, .version = 7, .count = 2},
                                               {3, 0xFFFFFFFF}),
                    100) == "t.bin: token 1 is 4294967295, but the model's vocabulary ends at 99");
}

TEST_CASE("TokenFile: text that cannot be used is refused", "[data][tokens]") {
  Files files;
  CHECK(files.error("t.txt", "", 256) == "t.txt: the file is empty");
  CHECK_THAT(files.error("t.txt", "good text, then \xE9!", 256),
             Catch::Matchers::StartsWith(
                 "t.txt: not UTF-8 text: byte 16 (0xe9) starts no valid character; it looks like "
                 "Latin-1 (single bytes above 127 between letters): make it UTF-8, and look at the "
                 "result:\n  iconv -f WINDOWS-1252 -t UTF-8 "));
  CHECK(files.error("t.txt", "abc", 255) ==
        "t.txt: the byte tokenizer needs a vocabulary of 256, the model has 255");
  const std::string text = files.add("t.txt", "abc");
  CHECK_THAT(error_of([&] { TokenFile(text + ".no", 256); }),
             Catch::Matchers::Equals(text + ".no: No such file or directory"));
  CHECK_THAT(error_of([&] { TokenFile(files.directory().path().string(), 256); }),
             Catch::Matchers::ContainsSubstring("not a regular file"));
}

}  // namespace dstrain::test
