#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain::config {

/// A file of training or held-out data, and its weight in a mixture.
struct DataFile {
  std::string path;
  double weight = 0;  ///< positive and finite, in any unit; 0 for all files: weight by size

  friend bool operator==(const DataFile&, const DataFile&) = default;
};

/// Parses the words after an option in the form of Megatron's --data-path: one file, several files
/// ("A B"), or a weight before each ("0.7 A 0.3 B"). A word in a weight's place is a weight if it
/// is a number. A failure says what is wrong and how to write it.
Result<std::vector<DataFile>> parse_data_files(std::span<const std::string> words);

/// Parses "narrator=system pupil=user": names that records have for roles, and the roles. A name
/// may have blanks. A failure says what is wrong and how to write it.
Result<std::map<std::string, std::string>> parse_role_names(std::string_view text);

/// Parses "2026-11-29"; none: it is not a day.
std::optional<std::chrono::year_month_day> parse_date(std::string_view text);

/// Formats the files for messages: "0.7 A 0.3 B".
std::string describe(std::span<const DataFile> files);

}  // namespace dstrain::config
