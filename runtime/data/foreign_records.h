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

/// What may stand beside a question, or a prompt, and belongs to it.
inline constexpr std::array<std::string_view, 8> question_parts{
    "instruction", "context",  "contexts",  "passage",
    "background",  "document", "documents", "input"};

/// A key by which the form of a record is known, and the type of its value as jq names it.
struct FormKey {
  std::string_view key;
  std::string_view type;
};

/// The type of what becomes a text without a choice: a string, a number, true or false.
inline constexpr std::string_view word_type = "word";
std::string_view type_in_jq(const nlohmann::json& value);

/// The keys that the command for a record needs in all others; empty: there is no command, and it
/// is no record of ours.
std::vector<FormKey> form_of(const nlohmann::json& record);
bool has_form(const nlohmann::json& record, const std::vector<FormKey>& form);

/// The command that makes records which are read of one as other programs have it, told by its
/// keys: ShareGPT's conversations, Alpaca's instructions, questions with answers; or of one that
/// is read but for what stands beside it. ": jq ..." with `file` in it, for the end of a message;
/// empty: none is known. No key that would change what is learned gets lost: it is put in, or
/// stays and is refused when the result is read.
std::string record_conversion(const nlohmann::json& record, const std::string& file);

/// The same for a whole document: an array of such records, or objects over several lines. Throws
/// Error{input} if the first record holds what no command keeps.
std::string document_conversion(std::string_view document, const std::string& file);

/// The command to fill in where none is known, for the end of a message, "; ..."; empty: the record
/// is.
std::string conversion_pattern(const nlohmann::json& record, const std::string& file);

/// The key of an answer that is a number, whose digits jq would not keep; empty: it is none.
std::string_view number_answer(const nlohmann::json& record);

/// Whether a text begins with a record that is read or of which a conversion is known, whole or as
/// the first of an array.
bool holds_records(std::string_view text);

/// Whether a text begins with a JSON object of any keys.
bool holds_object(std::string_view text);

/// Whether a record, ours or of another program, has answers that are learned apart from what they
/// answer, which token files cannot tell.
bool has_answers(const nlohmann::json& record);

/// Throws Error{input} naming what a record of another program holds that no command keeps, as
/// nothing is built for it: tools, an answer that is not to be learned. Records of which no
/// conversion is known pass.
void refuse_unkept(const nlohmann::json& record, const std::string& place);

/// That roles of a conversation are none that are known, with the command that gives them to
/// `file`: their turns would not be learned, or not as answers. Empty: all are known.
std::string explain_roles(std::span<const Message> messages, const std::string& file);

}  // namespace dstrain::data
