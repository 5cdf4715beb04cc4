
#include "runtime/base/error.h"
#include "runtime/checkpoint/manifest_text.h"
#include "tests/checkpoint/checkpoint_files.h"
#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

using namespace checkpoint;

/// Two ranks, two tensors, two states, six files.
Manifest small_manifest() {
  Manifest manifest;
  manifest.program = "dstrain 0.1.0";
  manifest.step = 3;
  manifest.world_size = 2;
  manifest.states = {{"fp32", DType::f32, "optim_states"},
                     {"weights", DType::bf16, "model_states"}};
  manifest.tensors = {{"a", {2, 3}, {{1, 0, 5}, {0, 5, 6}}}, {"b", {}, {{0, 0, 1}}}};
  manifest.files = {{"config.json", 3, {0xabc}}, {"empty", 0, {}}};
  for (const char* const rank : {"0", "1"}) {
    const std::string shard = std::string("global_step3/zero_pp_rank_") + rank + "_mp_rank_00_";
    manifest.files.push_back({shard + "model_states.safetensors", chunk_bytes, {1}});
    manifest.files.push_back({shard + "optim_states.safetensors", chunk_bytes + 1, {1, 2}});
  }
  return manifest;
}

/// The text of small_manifest() without its checksum.
std::string small_body() {
  const std::string text = to_text(small_manifest());
  return text.substr(0, text.rfind("\"checksum\""));
}

std::string sealed(const std::string& body) {
  return body + "\"checksum\":\"" + to_text(checksum_of(std::as_bytes(std::span(body)))) + "\"}\n";
}

std::string problem_of(const std::string& text) {
  try {
    parse_manifest(text, "manifest.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::input);
    return error.what();
  }
  return "";
}

struct Edit {
  const char* from;
  const char* to;
  const char* problem;  ///< a part of the message
};

void check_refused(const Edit& edit) {
  std::string body = small_body();
  const std::size_t at = body.find(edit.from);
  REQUIRE(at != std::string::npos);
  body.replace(at, std::string(edit.from).size(), edit.to);
  CAPTURE(edit.from, edit.to);
  CHECK_THAT(problem_of(sealed(body)), Catch::Matchers::StartsWith("manifest.json: "));
  CHECK_THAT(problem_of(sealed(body)), Catch::Matchers::ContainsSubstring(edit.problem));
}

}  // namespace

TEST_CASE("Manifest: a text is read back and written again as it was", "[checkpoint]") {
  const std::string text = to_text(small_manifest());
  CHECK(text.find("\"version\":1,") != std::string::npos);
  const Manifest read = parse_manifest(text, "manifest.json");
  CHECK(to_text(read) == text);
  CHECK(read.step == 3);
  CHECK(read.states[1].dtype == DType::bf16);
  CHECK(read.tensors[0].shape == Shape{2, 3});
  CHECK(read.tensors[0].slices[1].rank == 0);
  CHECK(read.tensors[0].slices[1].end == 6);
  CHECK(read.files[3].chunks == std::vector<Checksum>{1, 2});
  CHECK(read.shard_path(read.states[0], 1) ==
        "global_step3/zero_pp_rank_1_mp_rank_00_optim_states.safetensors");
}

TEST_CASE("Manifest: no change of a byte and no prefix is accepted", "[checkpoint]") {
  const std::string text = to_text(small_manifest());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    if (problem_of(changed).empty()) FAIL("byte " << i);
    if (problem_of(text.substr(0, i)).empty()) FAIL("prefix of " << i);
  }
  CHECK_THAT(problem_of(text + " "), Catch::Matchers::ContainsSubstring("damaged: its"));
  CHECK_THAT(problem_of(" " + text), Catch::Matchers::ContainsSubstring("damaged: its"));
  CHECK_THAT(problem_of(""), Catch::Matchers::ContainsSubstring("too few"));
}

TEST_CASE("Manifest: one of a newer version names the program that wrote it", "[checkpoint]") {
  std::string body = small_body();
  body.replace(body.find("\"version\":1"), 11, "\"version\":12");
  body.replace(body.find("dstrain 0.1.0"), 13, "dstrain 7.3.0");
  const auto text = GENERATE_COPY(as<std::string>{}, sealed(body), body + "another seal");
  try {
    parse_manifest(text, "manifest.json");
    FAIL("it was read");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::newer_format);
    CHECK_THAT(error.what(), Catch::Matchers::StartsWith(
                                 "manifest.json: dstrain 7.3.0 wrote it in version 12 of the "
                                 "format; this is dstrain "));
  }
}

TEST_CASE("Manifest: another grammar is refused even under a right checksum", "[checkpoint]") {
  const auto edit = GENERATE(values<Edit>({
      {"\"version\":1", "\"version\":0", "version 0 of the format; this program reads version 1"},
      {"\"version\":1", "\"version\":01", "a number without sign"},
      {"dstrain checkpoint", "dstrain weights", "expected {\"format\":\"dstrain checkpoint\""},
      {"\"step\":3,", "", "expected , \"step\":"},
      {"\"step\":3,", "\"step\":3,\"step\":3,", "expected ,\"world_size\":"},
      {"\"step\":3,", "\"step\":\"3\",", "a number without sign, found \"3\""},
      {"\"step\":3,", "\"step\":-3,", "a number without sign, found -3"},
      {"\"step\":3,", "\"step\":3.0,", "expected ,\"world_size\":, found .0"},
      {"\"step\":3,", "\"step\":9007199254740993,", "a number of at most 2^53"},
      {"\"step\":3,", "\"step\":99999999999999999999,", "a number of at most 2^53"},
      {"\"world_size\":2", "\"world_size\":4294967298", "the number is too large"},
      {"\"chunk_bytes\":1048576", "\"chunk_bytes\":4096", "chunk_bytes must be 1048576"},
      {"dstrain 0.1.0", "", "the program has no name"},
      {"\"states\":[", "\"states\":{", "expected \"states\":["},
      {"\"F32\"", "\"F64\"", "expected \"F32\", found \"F64\""},
      {"\"shape\":[2,3]", "\"shape\":[1,1,1,1,6]", "a shape has at most 4 extents"},
      {"\"slices\":[[1,0,5],", "\"slices\":[[1,0],", "expected ,, found ]"},
      {"{\"path\":\"empty\"", "{\"bytes\":0,\"path\":\"empty\"", "expected {\"path\":"},
      {"\"path\":\"empty\"", "\"path\":\"em\\u0070ty\"", "printable ASCII without escapes"},
      {"\"path\":\"empty\"", "\"path\":\"em\npty\"", "printable ASCII without escapes"},
      {"0000000000000abc", "0000000000000ABC", "16 hexadecimal digits"},
      {"0000000000000abc", "0000000000000ab", "16 hexadecimal digits"},
      {"0000000000000abc", "-000000000000abc", "16 hexadecimal digits"},
      {"],\n\"files\"", "] ,\n\"files\"", "expected , , found  , \"files\":["},
  }));
  // Line ends are blanks in messages, which are one line.
  check_refused(edit);
}

TEST_CASE("Manifest: a broken rule is refused even under a right checksum", "[checkpoint]") {
  const auto edit = GENERATE(values<Edit>({
      {"\"world_size\":2", "\"world_size\":0", "world_size is 0, it must be 1 to"},
      {"\"world_size\":2", "\"world_size\":2000000", "world_size is 2000000"},
      {"\"name\":\"weights\"", "\"name\":\"fp32\"", "two states are named fp32"},
      {"\"name\":\"weights\"", "\"name\":\"a.b\"", "'a.b' is not a valid state name"},
      {"\"name\":\"weights\"", "\"name\":\"\"", "'' is not a valid state name"},
      {"\"file\":\"model_states\"", "\"file\":\"../x\"", "neither optim_states nor model_states"},
      {"\"name\":\"b\"", "\"name\":\"a\"", "two tensors are named a"},
      {"\"name\":\"b\"", "\"name\":\"\"", "'' is not a valid tensor name"},
      {"\"shape\":[2,3]", "\"shape\":[2,0]", "the tensor a has the shape (2, 0)"},
      {"\"shape\":[2,3]", "\"shape\":[9007199254740992,2]", "the tensor a has the shape"},
      {"\"shape\":[2,3]", "\"shape\":[2,4]", "its slices end at 6 of 8 elements"},
      {"[1,0,5],[0,5,6]", "[1,0,5]", "its slices end at 5 of 6 elements"},
      {"[1,0,5],[0,5,6]", "", "its slices end at 0 of 6 elements"},
      {"[1,0,5],[0,5,6]", "[1,0,5],[0,4,6]", "a slice is [4, 6), but the next element is 5"},
      {"[1,0,5],[0,5,6]", "[1,0,4],[0,5,6]", "a slice is [5, 6), but the next element is 4"},
      {"[1,0,5],[0,5,6]", "[0,5,6],[1,0,5]", "a slice is [5, 6), but the next element is 0"},
      {"[1,0,5],[0,5,6]", "[1,0,5],[0,5,5],[0,5,6]", "a slice is [5, 5)"},
      {"[1,0,5],[0,5,6]", "[1,0,5],[0,5,7]", "its slices end at 7 of 6 elements"},
      {"[1,0,5],[0,5,6]", "[2,0,5],[0,5,6]", "a slice is of rank 2 of 2"},
      {"\"path\":\"empty\"", "\"path\":\"/empty\"", "'/empty' is not the path of a file in"},
      {"\"path\":\"empty\"", "\"path\":\"../empty\"", "'../empty' is not the path of a file in"},
      {"\"path\":\"empty\"", "\"path\":\"d/../empty\"", "'d/../empty' is not the path of a file"},
      {"\"path\":\"empty\"", "\"path\":\"d/./empty\"", "'d/./empty' is not the path of a file"},
      {"\"path\":\"empty\"", "\"path\":\"d//empty\"", "'d//empty' is not the path of a file in"},
      {"\"path\":\"empty\"", "\"path\":\"empty/\"", "'empty/' is not the path of a file in"},
      {"\"path\":\"empty\"", "\"path\":\"\"", "'' is not the path of a file in"},
      {"\"path\":\"empty\"", "\"path\":\"manifest.json\"",
       "'manifest.json' is not the path of a file"},
      {"\"path\":\"empty\"", "\"path\":\"config.json\"", "not in the order of their paths"},
      {"\"path\":\"empty\"", "\"path\":\"another\"", "not in the order of their paths"},
      {"\"bytes\":0", "\"bytes\":1", "has 1 bytes and 0 checksums"},
      {"\"bytes\":0", "\"bytes\":9007199254740992", "has 9007199254740992 bytes and 0 checksums"},
      {"\"bytes\":1048577", "\"bytes\":1048576", "has 1048576 bytes and 2 checksums"},
      {"rank_1_mp_rank_00_optim", "rank_3_mp_rank_00_optim", "is not listed, although rank 1 has"},
  }));
  check_refused(edit);
}

TEST_CASE("Manifest: one that breaks a rule is not written", "[checkpoint]") {
  Manifest manifest = small_manifest();
  manifest.tensors[0].slices.pop_back();
  CHECK_THROWS_AS(to_text(manifest), Error);
  manifest = small_manifest();
  manifest.files[0].path = "quoted\"";
  CHECK_THROWS_AS(to_text(manifest), Error);
}

}  // namespace dstrain::test
