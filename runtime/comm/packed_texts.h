#pragma once
#include <string>
#include <string_view>
#include <vector>

/// Packs the texts of several ranks into one, in any order: for each its rank (4 bytes), its length
/// (8) and its bytes.
namespace dstrain::comm {

void pack_text(std::string& packed, int rank, std::string_view text);

/// Returns the texts by rank, empty for ranks without one. Throws Error{internal} if `packed` is
/// malformed.
std::vector<std::string> unpack_texts(std::string_view packed, int size);

}  // namespace dstrain::comm
