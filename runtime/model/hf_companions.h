#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"

namespace dstrain::model {

/// A file that is copied with its model, byte for byte: generation_config.json, or a file of the
/// tokenizer.
struct CompanionFile {
  std::string name;  ///< file name without a directory
  std::string bytes;
  friend bool operator==(const CompanionFile&, const CompanionFile&) = default;
};

/// Hugging Face's generation defaults, beside config.json.
inline constexpr std::string_view generation_config_file = "generation_config.json";

inline constexpr Bytes companion_bytes_max = 64 * mebibyte;

/// Whether a file of this name is a companion.
bool is_companion(std::string_view name);
/// Whether the file is part of the tokenizer.
bool is_of_tokenizer(const CompanionFile& file);

/// Reads the companions in a Hugging Face directory; symbolic links are followed. Throws
/// Error{input} for one that cannot be read or is larger than companion_bytes_max.
std::vector<CompanionFile> read_companions(const std::string& directory);
/// Reads only those of the tokenizer.
std::vector<CompanionFile> read_tokenizer_files(const std::string& directory);

}  // namespace dstrain::model
