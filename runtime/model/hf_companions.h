#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"

namespace dstrain::model {

/// A file that goes wherever its model goes, byte for byte: generation_config.json, or one of the
/// tokenizer's.
struct CompanionFile {
  std::string name;  ///< a plain file name
  std::string bytes;
  friend bool operator==(const CompanionFile&, const CompanionFile&) = default;
};

/// Hugging Face's defaults of generation, beside config.json.
inline constexpr std::string_view generation_config_file = "generation_config.json";

inline constexpr Bytes companion_bytes_max = 64 * mebibyte;

/// Whether a file of this name is one.
bool is_companion(std::string_view name);
/// Whether it is one of the tokenizer's.
bool is_of_tokenizer(const CompanionFile& file);

/// Those of a Hugging Face directory; symbolic links are followed. Throws Error{input} for one
/// that cannot be read or is larger than companion_bytes_max.
std::vector<CompanionFile> read_companions(const std::string& directory);
/// Those of the tokenizer alone.
std::vector<CompanionFile> read_tokenizer_files(const std::string& directory);

}  // namespace dstrain::model
