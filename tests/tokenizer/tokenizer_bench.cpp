// MB that one thread encodes per second of processor time, whatever else runs; a JSON line. The
// environment may name a directory with a tokenizer (DSTRAIN_TOKENIZER) and a text (DSTRAIN_TEXT).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/os/file.h"
#include "runtime/tokenizer/tokenizer.h"
#include "tests/support/catch.h"

using namespace dstrain;

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 16;

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

TEST_CASE("Tokenizer bench: encoding on one thread", "[bench]") {
  const std::string tests = DSTRAIN_SOURCE_DIR "/tests";
  const std::string directory = variable("DSTRAIN_TOKENIZER", tests + "/golden/tokenizers/gpt2");
  const std::string file = variable("DSTRAIN_TEXT", tests + "/../docs/launching.md");
  const auto tokenizer = tokenizer::Tokenizer::load(directory);
  const std::string text = read_text_file(file, gibibyte);
  std::vector<double> speeds;
  std::vector<std::int32_t> ids;
  for (int round = 0; round < 9; ++round) {
    ids.clear();
    const std::clock_t begin = std::clock();
    for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
      tokenizer.encode(std::string_view(text).substr(at, piece_bytes),
                       tokenizer::SpecialTokens::none, ids);
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    speeds.push_back(static_cast<double>(text.size()) / 1e6 / seconds);
  }
  std::sort(speeds.begin(), speeds.end());
  std::printf(R"({"tokenizer":"%s","file":"%s","bytes":%zu,"tokens":%zu,"piece":%zu,"MB/s":%.1f})"
              "\n",
              directory.c_str(), file.c_str(), text.size(), ids.size(), piece_bytes, speeds[4]);
  CHECK(!ids.empty());
}
