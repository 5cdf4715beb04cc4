#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/conversation.h"
#include "runtime/data/record_kind.h"
#include "runtime/data/record_reader.h"

namespace dstrain::data {

struct Record {
  RecordKind kind = RecordKind::text;
  std::string text{};  ///< for a completion: the prompt
  std::string completion{};
  Conversation conversation{};
};

/// Parses a record of a common layout (docs/data.md lists them). Ignores other keys of the object,
/// except those that would change the input of the model. Throws Error{input} that begins with the
/// file, line and, if JSON is broken, the column.
Record parse_record(const RawRecord& record,
                    const std::string& path,
                    const RecordOptions& options = {});

/// The tokens of a pair: ids; labels can also be `ignored_label`.
struct TokenPair {
  std::vector<std::int32_t> source;  ///< at least one
  std::vector<std::int32_t> labels;
};

/// Parses {"input_ids": [...], "labels": [...]}. There may be an "attention_mask" of ones for the
/// first of the input_ids; the source then ends with them. Throws as parse_record.
TokenPair parse_pair(const RawRecord& record, const std::string& path);

/// A multiple-choice question.
struct ChoiceRecord {
  std::string query;
  std::vector<std::string> choices;  ///< at least two, none of them empty
  std::size_t gold = 0;              ///< index of the right one
};

/// Parses {"query": "...", "choices": ["...", ...], "gold": 0}. Ignores other keys. Throws as
/// parse_record.
ChoiceRecord parse_choices(const RawRecord& record, const std::string& path);

/// Whether a text begins with such a record, or one that looks like it.
bool holds_choices(std::string_view text);

/// Returns the text of a record under `key`. Ignores other keys. Throws as parse_record.
std::string parse_text(const RawRecord& record, const std::string& key, const std::string& path);

/// Whether a text begins with a record of a common layout, and others seem to follow it.
bool holds_records(std::string_view text);

/// Whether a text begins with a JSON object of any keys.
bool holds_object(std::string_view text);

}  // namespace dstrain::data
