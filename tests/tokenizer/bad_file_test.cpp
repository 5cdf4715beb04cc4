// What is malformed or not supported is refused in a line that names the file and the place.
#include <string>

#include "runtime/os/file.h"
#include "runtime/tokenizer/special_names.h"
#include "runtime/tokenizer/tokenizer.h"
#include "runtime/tokenizer/tokenizer_json.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using tokenizer::Tokenizer;

namespace {

std::string error_of_json(const std::string& text) {
  return test::error_of([&] { tokenizer::parse_tokenizer_json(text, "t.json"); });
}

const std::string model =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]})";

struct Row {
  const char* text;  ///< of a model; beside the one above when it begins with a comma
  const char* error;
};

}  // namespace

TEST_CASE("Bad tokenizer.json: the error names the place", "[tokenizer]") {
  const auto row = GENERATE(values<Row>({
      {R"("model": {"type": "WordPiece"})",
       "t.json: model: has the type 'WordPiece', which is not supported: BPE and Unigram are"},
      {R"("x": 1)", "t.json: the file has no 'model'"},
      {R"("model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]})",
       "t.json: model.merges[0]: the token 'b' is not in the vocabulary"},
      {R"("model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})",
       "t.json: model.merges[0]: must be two tokens with a space between them, is 'a'"},
      {R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})",
       "t.json: model.vocab: 'a' and 'b' have the same id 0"},
      {R"("model": {"type": "BPE", "vocab": {"\u0000b": 0, "\u001b[2J": 0}, "merges": []})",
       "t.json: model.vocab: '\\x00b' and '\\x1b[2J' have the same id 0"},
      {R"("model": {"type": "BPE", "vocab": {"\u0000b": -1}, "merges": []})",
       "t.json: model.vocab.\\x00b: must be an id"},
      {R"("model": {"type": "BPE", "vocab": {"a": 4000}, "merges": []})",
       "t.json: model.vocab: the id 4000 is too large for 1 tokens"},
      {R"("model": {"type": "BPE", "vocab": {"a": -1}, "merges": []})",
       "t.json: model.vocab.a: must be an id"},
      {R"("model": {"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []})",
       "t.json: the key 'a' appears twice"},
      {R"("model": {"type": "BPE", "dropout": 0.1, "vocab": {}, "merges": []})",
       "t.json: model.dropout: must be null: tokens are not drawn at random"},
      {R"("model": {"type": "BPE", "end_of_word_suffix": "</w>", "vocab": {}, "merges": []})",
       "t.json: model: has a end_of_word_suffix, which is not supported"},
      {R"("model": {"type": "BPE", "unk_token": "?", "vocab": {}, "merges": []})",
       "t.json: model.unk_token: '?' is not in the vocabulary"},
      {R"("model": {"type": "Unigram", "vocab": [["a", 0]], "unk_id": 1})",
       "t.json: model.unk_id: must be the place of a token in vocab"},
      {R"("model": {"type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0})",
       "t.json: model.vocab[0][1]: must be a number"},
      {R"(, "version": "2.0")", "t.json: version: is '2.0', which is not supported: '1.0' is"},
      {R"(, "normalizer": {"type": "Sequence", "normalizers": [{"type": "BertNormalizer"}]})",
       "t.json: normalizer.normalizers[0]: has the type 'BertNormalizer', which is not supported"},
      {R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"})",
       "t.json: normalizer.precompiled_charsmap: is no precompiled table of SentencePiece"},
      {R"(, "normalizer": {"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""})",
       "t.json: normalizer.pattern.Regex: the regular expression is wrong: missing closing "
       "parenthesis"},
      {R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[a&&[b]]"},
           "behavior": "Isolated", "invert": false})",
       "t.json: pre_tokenizer.pattern.Regex: the regular expression has &&, which is not "
       "supported"},
      {R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"},
           {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})",
       "t.json: pre_tokenizer.pretokenizers[1]: has the prepend_scheme 'first' after another "
       "pre-tokenizer: not supported"},
      {R"(, "decoder": {"type": "CTC"})",
       "t.json: decoder: has the type 'CTC', which is not supported"},
      {R"(, "added_tokens": [{"id": 7, "content": "x"}])",
       "t.json: added_tokens[0]: 'x' has the id 7, but its turn is 3"},
      {R"(, "added_tokens": [{"id": 7, "content": "ab"}])",
       "t.json: added_tokens[0]: 'ab' has the id 7, but in the vocabulary 2"},
      {R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A"}},
           {"SpecialToken": {"id": "x"}}], "special_tokens": {"x": {"ids": [9]}}})",
       "t.json: post_processor: no token has id 9"},
  }));
  CAPTURE(row.text);
  const std::string text(row.text);
  CHECK(error_of_json("{" + (text.starts_with(',') ? model : "") + text + "}") == row.error);
}

TEST_CASE("Bad tokenizer.json: a template that adds a billion tokens is refused", "[tokenizer]") {
  constexpr int pieces = 1000;
  std::string ids = "0";
  std::string single = R"({"Sequence": {"id": "A"}})";
  for (int i = 0; i < pieces; ++i) {
    ids += ",0";
    single += R"(,{"SpecialToken": {"id": "x"}})";
  }
  CHECK(error_of_json("{" + model + R"(, "post_processor": {"type": "TemplateProcessing",
      "single": [)" + single +
                      R"(], "special_tokens": {"x": {"ids": [)" + ids + "]}}}}") ==
        "t.json: post_processor.single[2]: adds more than 1024 tokens to a text");
}

TEST_CASE("Tokenizer: steps that make a text grow without bound are refused", "[tokenizer]") {
  std::string steps;
  for (int i = 0; i < 12; ++i) {
    steps += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaaaa"},)";
  }
  steps.pop_back();
  const auto step = GENERATE(as<std::string>{}, "normalizer", "decoder");
  const std::string all = "{" + model + ", \"" + step + R"(": {"type": "Sequence", ")" + step +
                          R"(s": [)" + steps + "]}}";
  const auto codec = tokenizer::parse_tokenizer_json(all, "t.json");
  const std::string error = test::error_of([&] {
    std::vector<std::int32_t> ids;
    codec->encode("ab", tokenizer::SpecialTokens::added, ids);
    codec->decode(ids, tokenizer::SpecialText::kept);
  });
  CHECK_THAT(error, Catch::Matchers::StartsWith("t.json: " + step +
                                                ": makes more than 4224 bytes of one text"));
}

TEST_CASE("Bad tokenizer.json: what is no JSON is refused with its line", "[tokenizer]") {
  CHECK_THAT(error_of_json("{\n\"model\": }"), Catch::Matchers::ContainsSubstring("t.json: ") &&
                                                   Catch::Matchers::ContainsSubstring("line 2"));
  CHECK(error_of_json("[]") == "t.json: not a JSON object");
  CHECK_THAT(error_of_json("{\"a\": " + std::string(40, '[')),
             Catch::Matchers::ContainsSubstring("nested deeper"));
  CHECK_THAT(error_of_json(std::string("{\"a\": \"\0\"}", 10)),
             Catch::Matchers::ContainsSubstring("NUL"));
}

TEST_CASE("Bad tokenizer directories: the error names the file", "[tokenizer]") {
  const test::TempDir folder;
  const auto error = [&] {
    const std::string message = test::error_of([&] { Tokenizer::load(folder.path().string()); });
    const std::string path = folder.path().string();
    return message.starts_with(path) ? message.substr(path.size()) : message;
  };
  CHECK(error() ==
        ": holds no tokenizer: neither tokenizer.json, nor vocab.json and merges.txt, nor "
        "tokenizer.model");
  write_text_file(folder.path() / "tokenizer.model", "no model");
  CHECK_THAT(error(),
             Catch::Matchers::StartsWith("/tokenizer.model: SentencePiece cannot read it: "));
  write_text_file(folder.path() / "vocab.json", R"({"a": 0, "b": 1, "ab": 2})");
  write_text_file(folder.path() / "merges.txt", "#version: 0.2\na b\nb c\n");
  CHECK(error() == "/merges.txt:3: the token 'c' is not in the vocabulary");
  write_text_file(folder.path() / "merges.txt", "#version: 0.2\r\na b\r\n");
  CHECK(error().empty());
  write_text_file(folder.path() / "tokenizer_config.json", R"({"eos_token": 3})");
  CHECK(error() == "/tokenizer_config.json: eos_token: must be a string");
  write_text_file(folder.path() / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  CHECK(error() == ": the eos_token of its files, </s>, is not in the vocabulary");
}

TEST_CASE("Bad tokenizer: other formats are named with what makes a tokenizer.json of them",
          "[tokenizer]") {
  const auto [name, bytes, format] = GENERATE(table<std::string, std::string, std::string>(
      {{"spiece.model", "\n\x0e", "T5's form"},
       {"tekken.json", "{}", "Mistral's form, tekken"},
       {"tokenizer.model", "IQ== 0\nIg== 1\n", "tiktoken's form"},
       {"tokenizer.model", "IQ==\t0\n", ""},
       {"tokenizer.model", "\n", ""}}));
  const test::TempDir folder;
  write_text_file(folder.path() / name, bytes);
  const std::string error = test::error_of([&] { Tokenizer::load(folder.path().string()); });
  CAPTURE(error);
  CHECK(error.starts_with((folder.path() / name).string() + ": "));
  CHECK((error.find("a tokenizer in " + format) != std::string::npos) == !format.empty());
}

TEST_CASE("Bad tokenizer: two files of an old version that disagree on a token are refused",
          "[tokenizer]") {
  const test::TempDir folder;
  const std::string listed = GENERATE("", R"(, "added_tokens_decoder": {})");
  write_text_file(folder.path() / "tokenizer_config.json",
                  R"({"eos_token": "</s>")" + listed + "}");
  write_text_file(folder.path() / "special_tokens_map.json",
                  R"({"eos_token": {"content": "<end>"}, "bos_token": "<s>"})");
  const auto read = [&] {
    return tokenizer::read_special_names(folder.path());
  };
  if (listed.empty()) {
    CHECK_THAT(test::error_of(read),
               Catch::Matchers::ContainsSubstring(
                   "special_tokens_map.json: eos_token: is \"<end>\", and \"</s>\" in "
                   "tokenizer_config.json"));
  } else {
    CHECK(read().eos == "</s>");
    CHECK(read().bos == "<s>");
  }
}
