#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

namespace dstrain::test {

inline std::string write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  return path.string();
}

struct TokenHeader {
  std::int32_t magic = 20240520;
  std::int32_t version = 1;
  std::int32_t count = 0;
};

/// The bytes of an llm.c token file whose header claims what it is told to.
template <class Id>
std::string token_bytes(const TokenHeader& header, const std::vector<Id>& ids) {
  std::array<std::int32_t, 256> words{header.magic, header.version, header.count};
  std::string bytes(sizeof words + ids.size() * sizeof(Id), '\0');
  std::memcpy(bytes.data(), words.data(), sizeof words);
  if (!ids.empty()) std::memcpy(bytes.data() + sizeof words, ids.data(), ids.size() * sizeof(Id));
  return bytes;
}

/// The tokens 0, 1, 2 ... count - 1 as a file of u16 ids.
inline std::string counting_tokens(std::int32_t count) {
  std::vector<std::uint16_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(i);
  return token_bytes({.count = count}, ids);
}

}  // namespace dstrain::test
