#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/problems.h"

namespace dstrain::config {

/// Where the options of a file of options stand in it. Typed options have no place.
class OptionPlaces {
 public:
  OptionPlaces() = default;
  explicit OptionPlaces(std::string file) : file_(std::move(file)) {}
  /// Reads what encode() returns. Throws Error{usage} that names the environment variable.
  static OptionPlaces decode(std::string_view text);
  /// JSON for the ranks: the launcher gives them the options without the file.
  [[nodiscard]] std::string encode() const;

  void add(const std::string& option, int line) { lines_[option] = line; }
  /// Keeps where the keys and values of a section stand that became JSON text, in the order of
  /// positions_of() (json_value.h).
  void set_section(std::vector<Position> positions) { section_ = std::move(positions); }
  [[nodiscard]] const std::vector<Position>& section() const { return section_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool empty() const { return lines_.empty(); }
  /// "run.yaml:3" of "--learning_rate"; empty: it does not stand in the file.
  [[nodiscard]] std::string of(std::string_view option) const;
  /// For messages: "at run.yaml:3" or "on the command line".
  [[nodiscard]] std::string phrase(std::string_view option) const;
  /// Puts the place in front of those lines of a message that begin with an option of the file:
  /// "run.yaml:3: --learning_rat: unknown option".
  [[nodiscard]] std::string put_into(std::string_view message) const;

 private:
  std::string file_;
  std::map<std::string, int, std::less<>> lines_;
  std::vector<Position> section_;
};

}  // namespace dstrain::config
