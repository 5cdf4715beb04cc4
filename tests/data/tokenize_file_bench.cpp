// How fast a file of text becomes a file of tokens, with OMP_NUM_THREADS threads; a JSON line. The
// environment may name a directory with a tokenizer (DSTRAIN_TOKENIZER) and a text (DSTRAIN_TEXT).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

#include <sys/resource.h>

#include "runtime/data/hugging_face_encoder.h"
#include "runtime/data/token_set.h"
#include "runtime/data/tokenize_file.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/os/mapped_file.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

TEST_CASE("TokenizeText bench: a file of text", "[bench]") {
  const std::string tests = DSTRAIN_SOURCE_DIR "/tests";
  const data::HuggingFaceEncoder encoder(
      variable("DSTRAIN_TOKENIZER", tests + "/golden/tokenizers/gpt2"));
  const std::string path = variable("DSTRAIN_TEXT", tests + "/../docs/launching.md");
  const MappedFile text(path);
  const test::TempDir folder;
  const std::clock_t processor = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  data::tokenize_text({path, text.bytes()}, encoder, folder.path() / "tokens");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const double processor_seconds = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  const auto set = data::TokenSet::open(folder.path() / "tokens");
  REQUIRE(set.ok());
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  std::printf(R"({"file":"%s","bytes":%zu,"tokens":%lld,"threads":%d,"MB/s":%.1f,)"
              R"("processor_s":%.1f,"peak_MiB":%ld})"
              "\n",
              path.c_str(), text.bytes().size(), static_cast<long long>(set.value().ids().size()),
              compute_threads(), static_cast<double>(text.bytes().size()) / 1e6 / seconds.count(),
              processor_seconds, usage.ru_maxrss / 1024);
}
