#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::data {

/// The byte tokenizer: every byte of UTF-8 text is one token.
inline constexpr std::int64_t byte_vocabulary = 256;

/// Returns ids 0..255, one per byte.
std::vector<std::int32_t> encode_bytes(std::string_view text);

/// Returns the bytes of the ids. A model's vocabulary may be larger than 256: any other id becomes
/// U+FFFD.
std::string decode_bytes(std::span<const std::int32_t> tokens);

/// Throws Error{input} that names the file and the first byte that does not begin a valid
/// character; `before`: bytes of the file before the text.
void check_utf8(std::span<const std::byte> text, const std::string& path, std::int64_t before = 0);

}  // namespace dstrain::data
