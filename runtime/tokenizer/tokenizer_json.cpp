#include "runtime/tokenizer/tokenizer_json.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/json_text.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/model_json.h"
#include "runtime/tokenizer/pipeline.h"

namespace dstrain::tokenizer {
namespace {

/// Checks the ids of added tokens. The library assigns them itself: tokens of the model keep their
/// ids, the others continue after its last id, in the order of the file.
class AddedTokenReader {
 public:
  explicit AddedTokenReader(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), next_id_(static_cast<std::int32_t>(vocabulary.count())) {}

  AddedToken read(const JsonField& field) {
    AddedToken token{.content = field.member("content").text(),
                     .id = field.member("id").number(),
                     .single_word = field.flag_or("single_word", false),
                     .lstrip = field.flag_or("lstrip", false),
                     .rstrip = field.flag_or("rstrip", false),
                     .normalized = field.flag_or("normalized", false),
                     .special = field.flag_or("special", false)};
    if (token.content.empty()) field.refuse("is empty");
    const auto known = vocabulary_.id(token.content);
    const std::int32_t id = known ? *known : next_id_++;
    if (id != token.id) {
      field.refuse(fmt::format("'{}' has the id {}, but {} {}", token.content, token.id,
                               known ? "in the vocabulary" : "its turn is", id));
    }
    return token;
  }

 private:
  const Vocabulary& vocabulary_;
  std::int32_t next_id_;
};

void refuse_other_versions(const JsonField& file) {
  const auto version = file.find("version");
  if (version && version->text() != "1.0") {
    version->refuse(fmt::format("is '{}', which is not supported: '1.0' is", version->text()));
  }
}

}  // namespace

std::unique_ptr<Codec> parse_tokenizer_json(std::string_view text, const std::string& file) {
  const nlohmann::json document = parse_json_object(text, file);
  const JsonField root(document, file + ": ");
  refuse_other_versions(root);
  PipelineParts parts;
  if (const auto field = root.find("normalizer")) parts.normalizers = read_normalizers(*field);
  if (const auto field = root.find("pre_tokenizer")) {
    parts.pre_tokenizers = read_pre_tokenizers(*field);
  }
  LoadedModel model = read_model(root.member("model"), parts.pre_tokenizers.unit);
  if (model.bpe != nullptr && parts.pre_tokenizers.unit == BpeUnit::character) {
    parts.pre_tokenizers.steps.push_back(make_joint_cuts(*model.bpe));
  }
  if (const auto field = root.find("added_tokens")) {
    AddedTokenReader reader(*model.vocabulary);
    field->for_each(
        [&](const JsonField& each) { parts.added_tokens.push_back(reader.read(each)); });
  }
  if (const auto field = root.find("post_processor")) {
    parts.post_processor = read_post_processor(*field);
  }
  if (const auto field = root.find("decoder")) parts.decoders = read_decoders(*field);
  parts.vocabulary = std::move(model.vocabulary);
  parts.model = std::move(model.model);
  return std::make_unique<Pipeline>(std::move(parts), file);
}

}  // namespace dstrain::tokenizer
