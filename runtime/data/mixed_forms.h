#pragma once
#include <string>
#include <string_view>

#include "runtime/data/line_reader.h"

/// Handles JSON lines whose records have several forms, of which a command converts one.
namespace dstrain::data {

/// Returns the commands that copy the records of the first one's form to one file and all others to
/// another, line by line. `first` is the first line of `text`.
std::string split_commands(std::string_view text, const Line& first, const std::string& path);

/// Throws Error{input} naming the first record whose form differs from that of the first one, with
/// split_commands(). Otherwise, for a record of another program on `line`, throws the error of a
/// record with the parts that only other records have (a system message, a context), so that the
/// command keeps them. If it returns, the error of the line holds for the file.
void refuse_mixed_forms(std::string_view text, const Line& line, const std::string& path);

}  // namespace dstrain::data
