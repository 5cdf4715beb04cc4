#pragma once
#include <string>
#include <string_view>

#include "runtime/data/line_reader.h"

/// JSON lines whose records have several forms, of which a command converts one.
namespace dstrain::data {

/// The commands that put the records of the first one's form into one file and all others into
/// another, each line as it is. `first` is the first line of `text`.
std::string split_commands(std::string_view text, const Line& first, const std::string& path);

/// Throws Error{input} naming the first record whose form is not that of the first one, with
/// split_commands(); else, for a record of another program on `line`, that which a command would
/// be made for that also puts in what only other records have: a system message, a context. If it
/// returns, what was said of the line holds for the file.
void refuse_mixed_forms(std::string_view text, const Line& line, const std::string& path);

}  // namespace dstrain::data
