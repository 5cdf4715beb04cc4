#pragma once
#include <cstdint>
#include <string>

#include "runtime/rank/rank_control.h"

namespace dstrain::cmd {

/// The lines that a person writes: from the launcher, whose stdin it is, or from this process's own
/// stdin if no launcher has started it. Use from one thread.
class ChatInput {
 public:
  /// Borrows `control`.
  explicit ChatInput(RankControl& control) : control_(control), from_launcher_(control.fd() >= 0) {}

  /// Asks the launcher for input if there is no line yet. Before the mark that invites a line, so
  /// that Ctrl-C behind it ends the program.
  void ask();
  enum class Got { line, end, nothing };
  /// Waits for the next line, at most so long. `line`: without its line break.
  Got next(std::string& line, int milliseconds);
  /// A line was taken and its answer begins.
  void begin_answer() { interrupted_ = false; }
  /// Whether the person has pressed Ctrl-C since then. Only a launcher tells.
  bool interrupted();
  /// Whether a person sits at a terminal, and reads the output there.
  [[nodiscard]] static bool is_terminal();

 private:
  bool take_line(std::string& line);
  void read_messages();
  void read_stdin();

  RankControl& control_;
  bool from_launcher_;
  std::string text_;  ///< that was read and is in no line yet
  bool ended_ = false;
  bool asked_ = false;         ///< for more, and there was no reply
  std::uint32_t request_ = 0;  ///< the last
  bool interrupted_ = false;
};

}  // namespace dstrain::cmd
