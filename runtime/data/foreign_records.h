#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/data/json_record.h"

namespace dstrain::data {

/// Keys beside a question or prompt that belong to it.
inline constexpr std::array<std::string_view, 8> question_parts{
    "instruction", "context",  "contexts",  "passage",
    "background",  "document", "documents", "input"};

/// A key that identifies the form of a record, and the type of its value in jq's terms.
struct FormKey {
  std::string_view key;
  std::string_view type;
};

/// The type of values that can become a text in only one way: strings, numbers, true and false.
inline constexpr std::string_view word_type = "word";
std::string_view type_in_jq(const nlohmann::json& value);

/// Returns the keys that the command for a record needs in all others; empty: there is no command,
/// and it is not one of our records.
std::vector<FormKey> form_of(const nlohmann::json& record);
bool has_form(const nlohmann::json& record, const std::vector<FormKey>& form);

/// Returns the command that converts records of other programs, recognised by the keys of one:
/// ShareGPT's conversations, Alpaca's instructions, questions with answers; or a record that can be
/// read except for the keys beside it. ":\n  jq ..." with `file` in it, for the end of a message;
/// empty: unknown. No key that changes what is learned is lost: it is put in, or stays and is
/// refused when the result is read.
std::string record_conversion(const nlohmann::json& record, const std::string& file);

/// Whether that command keeps the chosen one of two answers, as a record to imitate.
bool imitates_chosen(const nlohmann::json& record);

/// Does the same for a whole document: an array of such records, or objects over several lines.
/// Throws Error{input} if no command keeps the contents of the first record.
std::string document_conversion(std::string_view document, const std::string& file);

/// Returns a command to fill in for an unknown record, for the end of a message, "; ..."; empty:
/// the record is known.
std::string conversion_pattern(const nlohmann::json& record, const std::string& file);

/// Returns the key of an answer that is a number, whose digits jq would not keep; empty: none.
std::string_view number_answer(const nlohmann::json& record);

/// Whether a text begins with a record that can be read or converted, alone or as the first of an
/// array.
bool holds_records(std::string_view text);

/// Whether a text begins with a JSON object of any keys.
bool holds_object(std::string_view text);

/// Whether a record, ours or of another program, has answers that are trained on separately from
/// their questions, which token files cannot express.
bool has_answers(const nlohmann::json& record);

/// Throws Error{input} naming a part of another program's record that no command keeps, because it
/// is not supported: tools, an answer that must not be learned. Records without a known conversion
/// pass.
void refuse_unkept(const nlohmann::json& record, const std::string& place);

/// Explains that roles of a conversation are unknown, with the command that names them in `file`:
/// their turns would not be learned, or not as answers. Empty: all are known.
std::string explain_roles(std::span<const Message> messages, const std::string& file);

}  // namespace dstrain::data
