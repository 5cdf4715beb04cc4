#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/conversation.h"
#include "runtime/data/record_kind.h"

namespace dstrain::data {

struct Message {
  std::string role;
  std::string content;
};

struct Record {
  RecordKind kind = RecordKind::text;
  std::string text{};  ///< for a completion: the prompt
  std::string completion{};
  Conversation conversation{};
};

/// Parses one line, without its end. Ignores other keys of the object, except those that would
/// change the input of the model. Throws Error{input} that begins with `place`, "data.jsonl:7", and
/// the column if there is one; commands in the message use the file of `place`.
Record parse_record(std::string_view line, const std::string& place);

/// The tokens of a pair: ids; labels can also be `ignored_label`.
struct TokenPair {
  std::vector<std::int32_t> source;  ///< at least one
  std::vector<std::int32_t> labels;
};

/// Parses {"input_ids": [...], "labels": [...]}. There may be an "attention_mask" of ones for the
/// first of the input_ids; the source then ends with them. Throws as parse_record.
TokenPair parse_pair(std::string_view line, const std::string& place);

/// Returns the text of one line under `key`. Ignores other keys. Throws as parse_record.
std::string parse_text(std::string_view line, const std::string& key, const std::string& place);

}  // namespace dstrain::data
