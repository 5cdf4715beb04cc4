#include "runtime/checkpoint/shard_writer.h"

#include <cerrno>
#include <vector>

#include <fcntl.h>

#include "runtime/base/error.h"
#include "runtime/base/fd_io.h"
#include "runtime/checkpoint/new_file.h"
#include "runtime/safetensors/header.h"

namespace dstrain::checkpoint {

FileRecord write_shard(const std::filesystem::path& root,
                       const std::string& path,
                       std::span<const ShardTensor> tensors) {
  std::vector<safetensors::TensorInfo> infos;
  for (const auto& [name, values] : tensors) {
    DSTRAIN_CHECK(values.dense() && values.device().kind == DeviceKind::cpu, "{}", name);
    infos.push_back({name, values.dtype(), values.shape()});
  }
  const safetensors::Layout layout = safetensors::lay_out(infos);
  NewFile file(root, path, static_cast<Bytes>(layout.bytes));
  file.append(std::as_bytes(std::span(layout.head)));
  for (const auto& [name, values] : tensors) {
    file.append({values.data(), static_cast<std::size_t>(values.bytes())});
  }
  return file.finish();
}

FileRecord write_text(const std::filesystem::path& root,
                      const std::string& path,
                      std::string_view text) {
  NewFile file(root, path, static_cast<Bytes>(text.size()));
  file.append(std::as_bytes(std::span(text)));
  return file.finish();
}

FileRecord record_file(const std::filesystem::path& root, const std::string& path) {
  const std::string name = (root / path).string();
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) fail_errno(errno, "open " + name);
  FileRecord record{path, 0, {}};
  std::vector<std::byte> chunk(static_cast<std::size_t>(chunk_bytes));
  while (true) {
    const std::size_t size =
        read_fully_at(fd.get(), static_cast<std::uint64_t>(record.bytes), chunk, name);
    if (size == 0) return record;
    record.chunks.push_back(checksum_of(std::span(chunk).first(size)));
    record.bytes += static_cast<Bytes>(size);
  }
}

}  // namespace dstrain::checkpoint
