#include "launcher/hosts/binary_bundle.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t polynomial = 0x04C11DB7;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t rest = i << 24;
    for (int bit = 0; bit < 8; ++bit) rest = (rest << 1) ^ ((rest >> 31) * polynomial);
    table[i] = rest;
  }
  return table;
}

constexpr auto table = make_table();

std::uint32_t feed(std::uint32_t sum, std::uint8_t byte) {
  return (sum << 8) ^ table[(sum >> 24) ^ byte];
}

BundledFile read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  BundledFile read{path.filename(), std::string(std::istreambuf_iterator<char>(file), {}), 0};
  if (!file || read.bytes.empty()) fail(ErrorCode::io, "cannot read {} to copy it", path.string());
  read.checksum = posix_checksum(read.bytes);
  return read;
}

bool belongs(const std::string& name) {
  const bool other_project = name.starts_with("lib") && name.find(".so.") != name.npos &&
                             !name.starts_with("libdstrain.so.");
  return other_project || name == "dstrain" || name == "dstraind" ||
         (name.starts_with("libdstrain_") && name.ends_with(".so"));
}

}  // namespace

std::uint32_t posix_checksum(std::string_view bytes) {
  std::uint32_t sum = 0;
  for (const char byte : bytes) sum = feed(sum, static_cast<std::uint8_t>(byte));
  for (std::size_t rest = bytes.size(); rest != 0; rest >>= 8) {
    sum = feed(sum, static_cast<std::uint8_t>(rest & 0xFF));
  }
  return ~sum;
}

BinaryBundle read_bundle(const fs::path& programs,
                         const fs::path& libraries,
                         const std::string& version) {
  BinaryBundle bundle{version, {}};
  std::set<fs::path> paths;
  for (const fs::path& folder : {programs, libraries}) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (belongs(entry.path().filename()) && entry.is_regular_file()) paths.insert(entry.path());
    }
  }
  for (const fs::path& path : paths) {
    bundle.files.push_back(read_file(path));
    const BundledFile& file = bundle.files.back();
    bundle.name += fmt::format("-{:08x}{:x}", file.checksum, file.bytes.size());
  }
  return bundle;
}

}  // namespace dstrain::launcher
