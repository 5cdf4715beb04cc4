#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// Returns the file, beside the input, for a command's output: "d/chat-converted.jsonl" for
/// "d/chat.csv.gz".
std::string converted_name(const std::string& file);

/// Returns the last extension of a file's name in lower case: ".jsonl" for "d/DATA.JSONL".
std::string lower_extension(const std::string& file);

/// Returns `path`, or if that exists "d/chat-2.jsonl" for "d/chat.jsonl", with the first free
/// number.
std::string free_name(const std::string& path);

/// Returns `command` with its output in free_name(`target`), which is created only if the command
/// succeeds: training on a part of the records would not fail.
std::string whole_or_none(std::string_view command, const std::string& target);

/// Returns "COMMAND d/chat.json", or a pipe that unpacks the file: "zcat d/chat.json.gz | COMMAND".
std::string reading(std::string_view command, const std::string& file);

/// Returns "d/chat.json" for "d/chat.json.gz".
std::string without_compression(const std::string& file);

}  // namespace dstrain::data
