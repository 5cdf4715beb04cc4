#pragma once
#include <functional>
#include <string_view>

namespace dstrain::launcher {

/// Hands what libssh logs on this thread to a function, while it lives: the only place where libssh
/// tells which keys it tries and which lines of a configuration it does not know.
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

/// What follows `start` in a line that contains it, or nothing.
std::string_view text_after(std::string_view line, std::string_view start);

}  // namespace dstrain::launcher
