#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "runtime/base/unique_handle.h"

namespace dstrain::cmd {

/// Throws Error{usage} for an --output_file that cannot be written. `tool`: the command, for
/// messages.
void check_output_place(const std::string& tool, const std::string& path);

/// Returns how many whole lines an output file of `generate` has, each a JSON object, if it is to
/// be continued up to `lines` lines; 0: it is new. Throws Error{usage} for a file that cannot be
/// written to, or that exists and is not to be continued, and Error{input} for one that is no such
/// output.
std::size_t check_output_lines(const std::string& path, bool resumes, std::size_t lines);

/// Writes lines to a file, or to stdout: each is written at once, so that what an interrupted run
/// leaves are whole lines.
class OutputLines {
 public:
  /// `path`: empty for stdout. Cuts a file behind its last whole line. Throws Error{io}.
  explicit OutputLines(const std::string& path);
  /// Writes a line, and adds its line break. Throws Error{io}.
  void write(std::string line);

 private:
  std::string path_;
  UniqueFd file_;
};

}  // namespace dstrain::cmd
