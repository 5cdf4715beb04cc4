#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// Returns the file, beside the input, for a command's output: "d/chat-converted.jsonl" for
/// "d/chat.json.gz".
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

/// Returns "d/chat" for "d/chat.json.gz": without the extensions of records and of their
/// compression.
std::string without_extensions(const std::string& file);

/// Returns "jq -nrR 'inputs | ...'", which prints the lines for which `test` in jq is true,
/// unchanged. Numbers keep the digits that jq would round.
std::string jq_lines(std::string_view test);

/// Whether a message ends with a command of jq_command(), below its sentence (command_below()).
bool gives_jq_command(std::string_view message);

/// Returns "jq -cn 'inputs | PROGRAM' d/chat.json > d/chat-converted.jsonl.tmp && mv ...", ready to
/// paste. `program` has no single quotes.
std::string jq_command(std::string_view program, const std::string& file);

}  // namespace dstrain::data
