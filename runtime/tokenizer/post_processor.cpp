#include "runtime/tokenizer/post_processor.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dstrain::tokenizer {
namespace {

/// Each text gets them, and no tokenizer needs more than a few.
constexpr std::size_t added_max = 1024;

PostProcessor read_template(const JsonField& field) {
  PostProcessor result;
  bool text_seen = false;
  const JsonField tokens = field.member("special_tokens");
  field.member("single").for_each([&](const JsonField& piece) {
    if (const auto sequence = piece.find("Sequence")) {
      const JsonField id = sequence->member("id");
      if (id.text() != "A" || text_seen) id.refuse("must be A, once");
      text_seen = true;
      return;
    }
    const std::string name = piece.member("SpecialToken").member("id").text();
    tokens.member(name).member("ids").for_each([&](const JsonField& id) {
      if (result.before.size() + result.after.size() == added_max) {
        piece.refuse(fmt::format("adds more than {} tokens to a text", added_max));
      }
      (text_seen ? result.after : result.before).push_back(id.number());
    });
  });
  if (!text_seen) field.member("single").refuse("has no place for the text");
  return result;
}

/// Reads `["</s>", 2]`.
std::int32_t read_token_pair(const JsonField& field) {
  if (field.size() != 2) field.refuse("must be a token and its id");
  return field.element(1).number();
}

void read_into(const JsonField& field, PostProcessor& result) {
  const std::string type = field.member("type").text();
  if (type == "Sequence") {
    field.member("processors").for_each([&](const JsonField& each) { read_into(each, result); });
    return;
  }
  if (type == "ByteLevel") return;  // only concerns offsets, which are not used here
  if (!result.before.empty() || !result.after.empty()) {
    field.refuse("is a second one that adds tokens");
  }
  if (type == "TemplateProcessing") {
    result = read_template(field);
  } else if (type == "RobertaProcessing" || type == "BertProcessing") {
    result.before = {read_token_pair(field.member("cls"))};
    result.after = {read_token_pair(field.member("sep"))};
  } else {
    field.refuse(fmt::format("has the type '{}', which is not supported", type));
  }
}

}  // namespace

PostProcessor read_post_processor(const JsonField& field) {
  PostProcessor result;
  read_into(field, result);
  return result;
}

}  // namespace dstrain::tokenizer
