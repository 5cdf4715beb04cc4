#pragma once
#include <string>
#include <string_view>
#include <vector>

/// How the texts of several ranks travel as one: of each its rank (4 bytes), its length (8) and its
/// bytes, in any order.
namespace dstrain::comm {

void pack_text(std::string& packed, int rank, std::string_view text);

/// By rank; empty where there is none. Throws Error{internal} when it is malformed.
std::vector<std::string> unpack_texts(std::string_view packed, int size);

}  // namespace dstrain::comm
