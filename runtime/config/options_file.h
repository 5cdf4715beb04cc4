#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/config/option_places.h"

namespace dstrain::config {

/// The arguments of `train` with the options of a file: --config FILE or, as Hugging Face's
/// commands take it, a FILE.yaml, .yml or .json that stands first. Those of the file come first,
/// without the ones that are typed too, under whatever name.
class ExpandedArguments {
 public:
  /// Throws Error{usage} for a file that cannot be used.
  explicit ExpandedArguments(std::span<const std::string> arguments);
  /// Options of a file that the launcher has read.
  ExpandedArguments(std::span<const std::string> words, OptionPlaces places)
      : words_(words.begin(), words.end()), places_(std::move(places)) {}

  [[nodiscard]] const std::vector<std::string>& words() const { return words_; }
  [[nodiscard]] const OptionPlaces& places() const { return places_; }
  /// One line each.
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  /// Returns the words of the file, without the options that words_ has.
  std::vector<std::string> read(const std::string& file);

  std::vector<std::string> words_;
  OptionPlaces places_;
  std::vector<std::string> warnings_;
};

/// Calls `read`, and puts the places of options into the message of its error.
template <class Read>
auto located(const OptionPlaces& places, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (places.empty()) throw;
    throw Error(error.code(), places.put_into(error.what()), error.errno_value());
  }
}

}  // namespace dstrain::config
