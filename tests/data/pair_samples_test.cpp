#include "runtime/data/pair_samples.h"

#include "runtime/base/label.h"
#include "runtime/data/open_samples.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Ids = std::vector<std::int32_t>;
using Catch::Matchers::ContainsSubstring;
constexpr std::int32_t none = ignored_label;

data::PairSamples open(std::string_view text) {
  return {{"d.jsonl", text}, {{.tokens = 4, .source = 3}, 50, {40, 41}}};
}

std::string message(std::string_view text) {
  return error_of([&] { open(text); });
}

TEST_CASE("PairSamples: the decoder's input is its labels shifted by one", "[data][pairs]") {
  const auto samples = open(
      "{\"input_ids\": [1, 2], \"labels\": [5, -100, 6]}\n\n"
      "{\"labels\": [7], \"input_ids\": [3, 4, 9], \"id\": \"more\"}\n");
  REQUIRE(samples.samples() == 2);
  data::SampleBuffer two(2, samples.sizes());
  samples.read(0, two.rows(0, 1));
  samples.read(1, two.rows(1, 1));
  CHECK(two.source == Ids{1, 2, 41, 3, 4, 9});
  CHECK(two.source_count == Ids{2, 3});
  CHECK(two.labels == Ids{5, none, 6, none, 7, none, none, none});
  CHECK(two.tokens == Ids{40, 5, 41, 6, 40, 7, 41, 41});
  CHECK(samples.notes().empty());
}

TEST_CASE("PairSamples: long records are truncated and records without labels are dropped",
          "[data][pairs]") {
  const auto samples = open(
      "{\"input_ids\": [1, 2, 3, 4], \"labels\": [5, 6, 7, 8, 9]}\n"
      "{\"input_ids\": [1], \"labels\": [-100, -100, -100, -100, 9]}\n"
      "{\"input_ids\": [1], \"labels\": []}\n");
  CHECK(samples.samples() == 1);
  data::SampleBuffer one(1, samples.sizes());
  samples.read(0, one.rows());
  CHECK(one.source == Ids{1, 2, 3});
  CHECK(one.labels == Ids{5, 6, 7, 8});
  CHECK(one.tokens == Ids{40, 5, 6, 7});
  REQUIRE(samples.notes().size() == 3);
  CHECK_THAT(samples.notes()[0],
             ContainsSubstring("1 of 3 sources are longer than max_source_length 3"));
  CHECK_THAT(samples.notes()[1],
             ContainsSubstring("2 of 3 targets are longer than max_target_length 4"));
  CHECK_THAT(samples.notes()[2], ContainsSubstring("2 of 3 pairs have no label that counts"));
}

TEST_CASE("PairSamples: a mask of padding ends the source", "[data][pairs]") {
  const auto samples =
      open(R"({"input_ids": [1, 2, 0], "attention_mask": [1, 1, 0], "labels": [5]})");
  data::SampleBuffer one(1, samples.sizes());
  samples.read(0, one.rows());
  CHECK(one.source_count == Ids{2});
  CHECK(one.source == Ids{1, 2, 41});
}

TEST_CASE("PairSamples: bad lines are named", "[data][pairs]") {
  CHECK(message("") == "d.jsonl: holds no pair");
  CHECK(message(R"({"input_ids": [1]})") == "d.jsonl:1: labels is missing");
  CHECK(message(R"({"input_ids": [], "labels": [1]})") == "d.jsonl:1: input_ids is empty");
  CHECK(message("\n{\"input_ids\": \"a\", \"labels\": [1]}") ==
        "d.jsonl:2: input_ids is string, not a list of token ids");
  CHECK(message(R"({"input_ids": [-100], "labels": [1]})") ==
        "d.jsonl:1: input_ids[0] is -100, not a token id");
  CHECK(message(R"({"input_ids": [1], "labels": [2, 1.5]})") ==
        "d.jsonl:1: labels[1] is 1.5, not a token id");
  CHECK(message(R"({"input_ids": [4294967297], "labels": [2]})") ==
        "d.jsonl:1: input_ids[0] is 4294967297, not a token id");
  CHECK(message(R"({"input_ids": [1], "labels": [50]})") ==
        "d.jsonl:1: labels: token 50 is not below the model's vocabulary of 50");
  CHECK(message(R"({"input_ids": [1], "labels": [-100]})") ==
        "d.jsonl: none of 1 pairs has a label within max_target_length 4");
  CHECK_THAT(message(R"({"input_ids": [1, 2], "attention_mask": [0, 1], "labels": [1]})"),
             ContainsSubstring(
                 "attention_mask must have as many entries as input_ids, ones and then zeros"));
  CHECK_THAT(message(R"({"input_ids": [1], "labels": [1], "decoder_input_ids": [0]})"),
             ContainsSubstring("decoder_input_ids is not implemented; leave it out"));
  CHECK_THAT(message(R"({"input_ids": [1], "labels": [1)"), ContainsSubstring("d.jsonl:1:"));
}

TEST_CASE("PairSamples: an encoder-decoder accepts only pairs", "[data][pairs]") {
  const TempDir folder;
  const std::string path = (folder.path() / "text.txt").string();
  const auto open_text = [&] {
    data::open_samples(path, *data::make_encoder("byte"),
                       {.sizes = {.tokens = 4, .source = 4}, .vocabulary = 50});
  };
  CHECK_THAT(error_of(open_text), ContainsSubstring("an encoder-decoder is trained on pairs"));
}

}  // namespace
}  // namespace dstrain::test
