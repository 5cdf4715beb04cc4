// Where documents begin within samples, by kind of file.
#include <fmt/format.h>

#include "runtime/data/open_samples.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Ids = std::vector<std::int32_t>;

/// Document starts of all samples.
std::vector<Ids> starts_of(const std::string& name,
                           const std::string& text,
                           bool packing = true,
                           const std::string& tokenizer = "byte") {
  const TempDir folder;
  const auto source =
      data::open_samples(write_file(folder.path() / name, text), *data::make_encoder(tokenizer),
                         {.sizes = {.tokens = 6, .documents = true},
                          .vocabulary = 60'000,
                          .packing = packing,
                          .cache = folder.path() / "cache"});
  std::vector<Ids> all;
  for (std::int64_t k = 0; k < source->samples(); ++k) {
    data::SampleBuffer sample(1, source->sizes());
    source->read(k, sample.rows());
    all.push_back(sample.document_start);
  }
  return all;
}

std::string record(const std::string& prompt, const std::string& completion) {
  return fmt::format("{{\"prompt\": \"{}\", \"completion\": \"{}\"}}\n", prompt, completion);
}

TEST_CASE("Documents: records of a row are documents and so is its padding", "[data][documents]") {
  const std::string records = record("a", "bc") + record("d", "e") + record("fg", "hijk");
  CHECK(starts_of("d.jsonl", records) == std::vector<Ids>{{0, 0, 0, 3, 3, 5}, {0, 0, 0, 0, 0, 0}});
  CHECK(starts_of("d.jsonl", records, false) ==
        std::vector<Ids>{{0, 0, 0, 3, 3, 3}, {0, 0, 2, 2, 2, 2}, {0, 0, 0, 0, 0, 0}});
}

TEST_CASE("Documents: texts of a stream may lie in several samples", "[data][documents]") {
  // abcdefgh ij k: samples begin at 0 and 6, and the labels of the last end with the stream.
  CHECK(starts_of("d.jsonl", "{\"text\": \"abcdefgh\"}\n{\"text\": \"ij\"}\n{\"text\": \"k\"}\n") ==
        std::vector<Ids>{{0, 0, 0, 0, 0, 0}, {0, 0, 2, 2, 4, 4}});
}

TEST_CASE("Documents: a file without document boundaries is refused", "[data][documents]") {
  const std::string gpt2 = DSTRAIN_SOURCE_DIR "/tests/golden/tokenizers/gpt2";
  for (const std::string& tokenizer : {std::string("byte"), gpt2}) {
    CAPTURE(tokenizer);
    CHECK_THAT(error_of([&] { starts_of("d.txt", "some text without ends", true, tokenizer); }),
               Catch::Matchers::ContainsSubstring(
                   "this file format does not record where documents begin"));
  }
}

}  // namespace
}  // namespace dstrain::test
