#pragma once
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "runtime/data/json_record.h"

namespace dstrain::data {

/// The command that makes records which are read of one as other programs have it, told by its
/// keys: ShareGPT's conversations, Alpaca's instructions, questions with answers. ": jq ..." for
/// the end of a message; empty: none is known.
std::string record_conversion(const nlohmann::json& record);

/// The same for a whole document, an array of such records, told by how it begins; empty likewise.
std::string document_conversion(std::string_view begin);

/// Why a conversation teaches nothing, though it would with the usual names of its roles ("human",
/// "gpt"), with the command that gives them; empty: there are answers, or no such name.
std::string explain_roles(std::span<const Message> messages);

/// The same when the template has refused the conversation, which may have answers.
std::string explain_refused_roles(std::span<const Message> messages);

}  // namespace dstrain::data
