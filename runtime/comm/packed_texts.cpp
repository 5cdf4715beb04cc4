#include "runtime/comm/packed_texts.h"

#include <cstdint>
#include <cstring>

#include "runtime/base/error.h"

namespace dstrain::comm {

void pack_text(std::string& packed, int rank, std::string_view text) {
  const std::int32_t number = rank;
  const std::uint64_t length = text.size();
  packed.append(reinterpret_cast<const char*>(&number), sizeof(number));
  packed.append(reinterpret_cast<const char*>(&length), sizeof(length));
  packed.append(text);
}

std::vector<std::string> unpack_texts(std::string_view packed, int size) {
  std::vector<std::string> texts(static_cast<std::size_t>(size));
  while (!packed.empty()) {
    std::int32_t rank = 0;
    std::uint64_t length = 0;
    DSTRAIN_CHECK(packed.size() >= sizeof(rank) + sizeof(length), "{} bytes", packed.size());
    std::memcpy(&rank, packed.data(), sizeof(rank));
    std::memcpy(&length, packed.data() + sizeof(rank), sizeof(length));
    packed.remove_prefix(sizeof(rank) + sizeof(length));
    DSTRAIN_CHECK(rank >= 0 && rank < size && length <= packed.size(), "{} bytes of rank {} of {}",
                  length, rank, size);
    texts[static_cast<std::size_t>(rank)] = packed.substr(0, length);
    packed.remove_prefix(length);
  }
  return texts;
}

}  // namespace dstrain::comm
