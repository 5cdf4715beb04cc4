#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"

namespace dstrain::config {

/// The arguments of `train` with the options of a file: --config FILE or, as Hugging Face's
/// commands take it, a FILE.yaml, .yml or .json that stands first. Those of the file come first,
/// without the ones that are typed too, under whatever name.
class ExpandedArguments {
 public:
  /// Throws Error{usage} for a file that cannot be used.
  explicit ExpandedArguments(std::span<const std::string> arguments);

  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  /// Puts the place in the file in front of those lines of a message that begin with one of its
  /// options: "run.yaml:3: --learning_rat: unknown option".
  [[nodiscard]] std::string with_places(std::string_view message) const;
  /// Calls `read`, and puts the places into its Error{usage}.
  template <class Read>
  auto located(const Read& read) const {
    try {
      return read();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      fail(ErrorCode::usage, "{}", with_places(error.what()));
    }
  }

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::string, std::less<>> places_;  ///< "run.yaml:3" of each option
};

}  // namespace dstrain::config
