#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dstrain::launcher {

/// A file of ours to copy to another host.
struct BundledFile {
  std::string name;
  std::string bytes;
  std::uint32_t checksum = 0;  ///< as POSIX cksum computes it
};

/// dstrain, dstraind, their library and its plug-ins, the libraries of other projects that lie
/// beside these (in a tarball), and a name for exactly these bytes.
struct BinaryBundle {
  std::string name;  ///< the version and a digest, fit for a directory
  std::vector<BundledFile> files;
};

/// Reads them from the folders of programs and library, which may be one. Throws Error{io}.
BinaryBundle read_bundle(const std::filesystem::path& programs,
                         const std::filesystem::path& libraries,
                         const std::string& version);

/// The checksum of POSIX cksum, which every host can compute.
std::uint32_t posix_checksum(std::string_view bytes);

}  // namespace dstrain::launcher
