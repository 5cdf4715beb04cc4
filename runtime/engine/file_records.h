#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::engine {

/// Encodes records of files as a rank sends them to others.
std::string encode_records(std::span<const checkpoint::FileRecord> records);
/// Throws Error{internal} if `text` is not from encode_records().
std::vector<checkpoint::FileRecord> decode_records(const std::string& text);

}  // namespace dstrain::engine
