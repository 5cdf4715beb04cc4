#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// Finds where an agent begins to speak. What a login shell or a connection prints before is noise.
class PreambleFilter {
 public:
  /// Takes bytes as they come and returns those behind the preamble. Throws Error{remote} when more
  /// than 1 MiB has come without one.
  std::string pass(std::string_view bytes);
  [[nodiscard]] bool found() const { return found_; }
  /// What came before it.
  [[nodiscard]] const std::string& noise() const { return noise_; }

 private:
  std::string noise_;
  bool found_ = false;
};

}  // namespace dstrain::launcher
