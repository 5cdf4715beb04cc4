#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::data {

/// What a line of JSON lines holds.
enum class RecordKind : std::uint32_t {
  text,        ///< {"text": "..."}
  completion,  ///< {"prompt": "...", "completion": "..."}
  messages,    ///< {"messages": [{"role": "...", "content": "..."}, ...]}
};

/// "text", "prompt and completion", "messages".
std::string_view name_of(RecordKind kind);

struct Message {
  std::string role;
  std::string content;
};

struct Record {
  RecordKind kind = RecordKind::text;
  std::string text{};  ///< of a completion: the prompt
  std::string completion{};
  std::vector<Message> messages{};  ///< at least one
};

/// Parses one line, without its end. Other keys of the object are skipped, but for those that would
/// change what the model sees. Throws Error{input} that begins with `place`, "data.jsonl:7", whose
/// file is in the commands that the message gives, and the column where there is one.
Record parse_record(std::string_view line, const std::string& place);

/// The tokens of a pair: ids, of labels also `ignored_label`.
struct TokenPair {
  std::vector<std::int32_t> source;  ///< at least one
  std::vector<std::int32_t> labels;
};

/// Parses {"input_ids": [...], "labels": [...]}, with or without an "attention_mask" of ones for
/// the first of the input_ids, which the pair then ends with. Throws as parse_record.
TokenPair parse_pair(std::string_view line, const std::string& place);

/// The text of one line under `key`. Other keys are skipped. Throws as parse_record.
std::string parse_text(std::string_view line, const std::string& key, const std::string& place);

}  // namespace dstrain::data
