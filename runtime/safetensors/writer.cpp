#include "runtime/safetensors/writer.h"

#include <cerrno>
#include <utility>

#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/shared_place.h"

namespace dstrain::safetensors {
Writer::Writer(std::filesystem::path path, std::span<const TensorInfo> tensors)
    : path_(std::move(path)) {
  const Layout layout = lay_out(tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    const auto bytes = static_cast<std::uint64_t>(tensor.shape.numel() * size_of(tensor.dtype));
    unwritten_[tensor.name] = {tensor.dtype, layout.offsets[i], layout.offsets[i] + bytes};
  }
  TemporaryFile temporary = make_temporary(path_);
  temporary_ = std::move(temporary.name);
  fd_ = std::move(temporary.fd);
  try {
    reserve_space(fd_.get(), static_cast<Bytes>(layout.bytes), path_.string());
    write_fully(fd_.get(), std::as_bytes(std::span(layout.head)), temporary_.string());
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

Writer::~Writer() {
  if (fd_) ::unlink(temporary_.c_str());
}

void Writer::write(const std::string& name, HostView values) {
  const auto found = unwritten_.find(name);
  DSTRAIN_CHECK(found != unwritten_.end(), "no tensor named {}", name);
  Unwritten& rest = found->second;
  DSTRAIN_CHECK(values.dtype() == rest.dtype && values.dense(), "{} of another dtype, or strided",
                name);
  const std::span<const std::byte> bytes(values.data(), static_cast<std::size_t>(values.bytes()));
  DSTRAIN_CHECK(bytes.size() <= rest.end - rest.offset, "{} gets more than its shape holds", name);
  write_fully_at(fd_.get(), rest.offset, bytes, temporary_.string());
  rest.offset += bytes.size();
}

void Writer::flush() {
  for (const auto& [name, rest] : unwritten_) {
    DSTRAIN_CHECK(rest.offset == rest.end, "{} lacks {} bytes", name, rest.end - rest.offset);
  }
  flush_file(fd_.get(), temporary_.string());
}

void Writer::finish() {
  flush();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_errno(errno, "rename to " + path_.string());
  }
  fd_.reset();
  flush_directory(path_.parent_path());
}

}  // namespace dstrain::safetensors
