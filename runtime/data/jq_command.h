#pragma once
#include <string>
#include <string_view>

namespace dstrain::data {

/// What a command makes of a file stands beside it: "d/chat-converted.jsonl" for "d/chat.json.gz".
std::string converted_name(const std::string& file);

/// "jq -c 'PROGRAM' d/chat.json > d/chat-converted.jsonl", to be typed as it is. `program` has no
/// single quotes.
std::string jq_command(std::string_view program, const std::string& file);

}  // namespace dstrain::data
