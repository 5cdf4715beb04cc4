#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "runtime/checkpoint/checksum.h"
#include "runtime/checkpoint/manifest.h"

namespace dstrain::test {

/// Makes of a checkpoint what dstrain 7.3.0 may write, in version 2 of the format.
inline void make_newer(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / checkpoint::manifest_name;
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const std::string body =
      R"({"format":"dstrain checkpoint","version":2,"program":"dstrain 7.3.0",)" +
      text.substr(text.find('\n'), text.rfind("\"checksum\"") - text.find('\n'));
  const checkpoint::Checksum checksum = checkpoint::checksum_of(std::as_bytes(std::span(body)));
  std::ofstream(path, std::ios::binary)
      << body << "\"checksum\":\"" << checkpoint::to_text(checksum) << "\"}\n";
}

}  // namespace dstrain::test
