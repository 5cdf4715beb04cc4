#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::engine {

/// Records of files as a rank tells them to others.
std::string encode_records(std::span<const checkpoint::FileRecord> records);
/// Throws Error{internal} for what is no such text.
std::vector<checkpoint::FileRecord> decode_records(const std::string& text);

}  // namespace dstrain::engine
