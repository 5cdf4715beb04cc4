#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fcntl.h>

#include "runtime/safetensors/file.h"
#include "runtime/tensor/tensor_view.h"
#include "tests/support/error_of.h"

namespace dstrain::test {

inline void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The bytes of a safetensors file with this header, as it is, and this data.
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  const std::uint64_t size = header.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + header + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// A flat view of `values`.
template <class T>
HostView flat(std::vector<T>& values) {
  return {std::span(values), {static_cast<std::int64_t>(values.size())}};
}

inline safetensors::File open_safetensors(const std::filesystem::path& path) {
  return {UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), path.filename().string()};
}

}  // namespace dstrain::test
