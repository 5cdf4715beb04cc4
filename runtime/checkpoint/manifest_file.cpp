#include "runtime/checkpoint/manifest_file.h"

#include "runtime/base/error.h"
#include "runtime/base/fd_io.h"
#include "runtime/base/file.h"
#include "runtime/checkpoint/catalog.h"

namespace dstrain::checkpoint {

Manifest read_manifest(int directory, const std::filesystem::path& path) {
  const std::string name = (path / manifest_name).string();
  const UniqueFd fd = open_beneath(directory, manifest_name, name);
  const Bytes bytes = regular_bytes(fd.get(), name);
  if (bytes > manifest_bytes_max) {
    fail(ErrorCode::input, "{}: {} is more than the {} allowed for a manifest", name,
         format_bytes(bytes), format_bytes(manifest_bytes_max));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(read_fully_at(fd.get(), 0, std::as_writable_bytes(std::span(text)), name));
  Manifest manifest = parse_manifest(text, name);
  const auto step = step_of(path.filename().string());
  if (step && *step != manifest.step) {
    fail(ErrorCode::input, "{}: is of step {}; was the directory renamed?", name, manifest.step);
  }
  return manifest;
}

}  // namespace dstrain::checkpoint
