#pragma once
#include <functional>
#include <string_view>

namespace dstrain::launcher {

/// Passes libssh's log lines of this thread to a function, while it lives: only there does libssh
/// report which keys it tries and which lines of a configuration it does not know.
class LibraryLog {
 public:
  using Listener = std::function<void(std::string_view line)>;
  explicit LibraryLog(Listener listener);
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;
  LibraryLog(LibraryLog&&) = delete;
  LibraryLog& operator=(LibraryLog&&) = delete;
  ~LibraryLog();

 private:
  Listener listener_;
};

/// The text after `start` in a line that contains it, else empty.
std::string_view text_after(std::string_view line, std::string_view start);

}  // namespace dstrain::launcher
