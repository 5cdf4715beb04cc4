#pragma once
#include <string>
#include <string_view>

#include "runtime/checkpoint/checksum.h"

/// What the writer and the parser of manifest.json must agree on; docs/checkpoints.md has the rest.
namespace dstrain::checkpoint::format {

inline constexpr std::string_view head = "{\"format\":\"dstrain checkpoint\",\"version\":";
inline constexpr int version = 1;
inline constexpr const char* this_program = "dstrain " DSTRAIN_VERSION;

/// The end of the text, whose checksum is that of all before it.
inline std::string sealed(Checksum checksum) {
  return "\"checksum\":\"" + to_text(checksum) + "\"}\n";
}

}  // namespace dstrain::checkpoint::format
