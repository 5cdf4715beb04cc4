#pragma once
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

/// How jq takes records out of what holds them: tables, lists, other records.
namespace dstrain::data {

/// What makes records that are read of one, for jq; "." if it is read as it is; none: not known.
using RecordProgram = std::optional<std::string> (*)(const nlohmann::json& record);

/// Of a document that holds all records in one list, LMFlow's instances, SQuAD's data or the rows
/// of Hugging Face's data sets server, and says nothing else of them; null: it is none.
const nlohmann::json* list_of_records(const nlohmann::json& record);

/// For what holds records of which `program_for` has a program, or has keys with capitals of which
/// `plain_program` has one that takes no record out of another; none: neither.
std::optional<std::string> holder_program(const nlohmann::json& record,
                                          RecordProgram program_for,
                                          RecordProgram plain_program);

}  // namespace dstrain::data
