#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/checkpoint/manifest.h"

namespace dstrain::checkpoint {

/// Returns manifest.json: JSON whose last member is the checksum of all the text before it, so that
/// any changed byte is detected. There is one text for each manifest. `manifest` must break no
/// rule.
std::string to_text(const Manifest& manifest);
/// Parses a manifest and checks everything: the checksum, that the text is the one from to_text,
/// and broken_rule(). Uses a small multiple of the text's memory. `path` is for messages. Throws
/// Error{input}, or Error{newer_format} that names the program for one of a newer version.
Manifest parse_manifest(std::string_view text, const std::string& path);

/// Reads and checks the manifest of the checkpoint `path`, opened as `directory`. Throws as
/// parse_manifest().
Manifest read_manifest(int directory, const std::filesystem::path& path);

}  // namespace dstrain::checkpoint
