#pragma once
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

/// Extracts records, with jq, from containers: tables, lists, other records.
namespace dstrain::data {

/// Returns the jq program that converts a record; "." if it is read unchanged; none: unknown.
using RecordProgram = std::optional<std::string> (*)(const nlohmann::json& record);

/// Returns the list of a document that holds all records and nothing else of interest: LMFlow's
/// instances, SQuAD's data or the rows of Hugging Face's data sets server; null: it is none.
const nlohmann::json* list_of_records(const nlohmann::json& record);

/// Returns the program for a container of records for which `program_for` has one, or for
/// capitalised keys for which `plain_program`, which extracts no records, has one; none: neither.
std::optional<std::string> holder_program(const nlohmann::json& record,
                                          RecordProgram program_for,
                                          RecordProgram plain_program);

}  // namespace dstrain::data
