#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/job/output_sink.h"
#include "launcher/process/line_splitter.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// Merges the ranks' streams into the launcher's. With several ranks, writes whole lines, each
/// after "[rank N]: ". The bytes of a stream that one rank alone writes are passed on as they come,
/// so that a progress bar works. Remembers the last lines of every rank.
class LogMux {
 public:
  /// `bare`: standard output comes from one rank.
  enum class Prefixes { all, bare };
  /// Borrows the sinks.
  LogMux(int world_size, OutputSink& out, OutputSink& err, Prefixes prefixes = Prefixes::all);

  void output(int rank, OutputStream stream, std::string_view bytes);
  /// Passes on what the rank wrote without a line end.
  void finish(int rank);
  /// A message of the launcher itself: stderr, on lines of its own.
  void own_lines(std::string_view lines);
  /// At most ten, both streams in the order they came, cut to a readable length.
  [[nodiscard]] std::vector<std::string> last_lines(int rank) const;

 private:
  struct RankState {
    LineSplitter splitters[2];
    std::deque<std::string> tail;
  };
  void line(int rank, OutputStream stream, std::string_view text);
  [[nodiscard]] bool passes_on(OutputStream stream) const {
    const bool bare = prefixes_ == Prefixes::bare && stream == OutputStream::out;
    return ranks_.size() == 1 || bare;
  }
  OutputSink& sink(OutputStream stream) { return stream == OutputStream::out ? out_ : err_; }

  OutputSink& out_;
  OutputSink& err_;
  Prefixes prefixes_;
  std::vector<RankState> ranks_;
};

}  // namespace dstrain::launcher
