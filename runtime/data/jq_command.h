#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// What a command makes of a file stands beside it: "d/chat-converted.jsonl" for "d/chat.json.gz".
std::string converted_name(const std::string& file);

/// The last extension of a file's name in small letters: ".jsonl" of "d/DATA.JSONL".
std::string lower_extension(const std::string& file);

/// `command` with its output in `target`, which is made only if the command succeeds: part of the
/// records would train as well as all of them.
std::string whole_or_none(std::string_view command, const std::string& target);

/// "COMMAND d/chat.json", or what unpacks the file into it: "zcat d/chat.json.gz | COMMAND".
std::string reading(std::string_view command, const std::string& file);

/// "d/chat" for "d/chat.json.gz": without the extensions of records and of their compression.
std::string without_extensions(const std::string& file);

/// "jq -nrR 'inputs | ...'": prints the lines of which `test` in jq is true, as they are. Numbers
/// keep the digits that jq would round.
std::string jq_lines(std::string_view test);

/// Whether a message ends with a command of jq_command().
bool gives_jq_command(std::string_view message);

/// "jq -cn 'inputs | PROGRAM' d/chat.json > d/chat-converted.jsonl.tmp && mv ...", to be typed as
/// it is. `program` has no single quotes.
std::string jq_command(std::string_view program, const std::string& file);

}  // namespace dstrain::data
