#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain::config {

/// A file of training data or held-out data, and its part of a mixture of several.
struct DataFile {
  std::string path;
  double weight = 0;  ///< above 0 and finite, in any unit; 0, then of all files: by size

  friend bool operator==(const DataFile&, const DataFile&) = default;
};

/// The files that the words after an option name, as Megatron's --data-path has them: one file,
/// files alone ("A B"), or a weight before each ("0.7 A 0.3 B"). A weight is what reads as a number
/// where one may stand. The failure says what is wrong and how it should be.
Result<std::vector<DataFile>> parse_data_files(std::span<const std::string> words);

/// The words again, for messages: "0.7 A 0.3 B".
std::string describe(std::span<const DataFile> files);

}  // namespace dstrain::config
