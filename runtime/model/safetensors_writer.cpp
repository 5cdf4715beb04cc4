#include "runtime/model/safetensors_writer.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"

namespace dstrain::model {
namespace {

void write_at(int fd,
              std::uint64_t offset,
              std::span<const std::byte> bytes,
              const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_errno(errno, "write " + name);
    offset += static_cast<std::uint64_t>(done);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

/// Where the file system cannot reserve, the writes themselves will find a full disk.
void reserve(int fd, std::uint64_t bytes, const std::string& name) {
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error != 0 && error != EOPNOTSUPP && error != EINVAL) {
    fail_errno(error,
               fmt::format("reserve {} for {}", format_bytes(static_cast<Bytes>(bytes)), name));
  }
}

void flush_directory(const std::filesystem::path& directory) {
  const std::string name = directory.empty() ? "." : directory.string();
  const UniqueFd fd(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail_errno(errno, "fsync " + name);
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path,
                                     std::span<const ParameterSpec> tensors,
                                     DType dtype,
                                     const std::string& prefix)
    : path_(std::move(path)), temporary_(path_.string() + ".tmp"), dtype_(dtype) {
  DSTRAIN_CHECK(dtype == DType::f32 || dtype == DType::bf16, "dtype {}", static_cast<int>(dtype));
  std::map<std::string, const ParameterSpec*> sorted;
  for (const ParameterSpec& tensor : tensors) sorted.emplace(tensor.name, &tensor);
  DSTRAIN_CHECK(sorted.size() == tensors.size(), "two of the {} tensors share a name",
                tensors.size());
  nlohmann::ordered_json header{{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t data_bytes = 0;
  for (const auto& [name, tensor] : sorted) {
    const std::uint64_t end =
        data_bytes + static_cast<std::uint64_t>(tensor->shape.numel() * size_of(dtype));
    const auto extents = tensor->shape.extents();
    header[prefix + name] = {{"dtype", dtype == DType::bf16 ? "BF16" : "F32"},
                             {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                             {"data_offsets", {data_bytes, end}}};
    progress_[name] = {data_bytes, end};
    data_bytes = end;
  }
  std::string text = header.dump();
  text.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(text.size()), 8)), ' ');
  const std::uint64_t header_bytes = text.size();
  for (auto& [name, place] : progress_) {
    place.offset += 8 + header_bytes;
    place.end += 8 + header_bytes;
  }
  fd_ = UniqueFd(
      ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd_) fail_errno(errno, "create " + temporary_.string());
  try {
    reserve(fd_.get(), 8 + header_bytes + data_bytes, path_.string());
    write_at(fd_.get(), 0, std::as_bytes(std::span(&header_bytes, 1)), temporary_.string());
    write_at(fd_.get(), 8, std::as_bytes(std::span(text)), temporary_.string());
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_) ::unlink(temporary_.c_str());
}

void SafetensorsWriter::write(const std::string& name, TensorView values) {
  DSTRAIN_CHECK(values.dtype() == dtype_ && values.dense(), "{} of another dtype, or strided",
                name);
  const auto found = progress_.find(name);
  DSTRAIN_CHECK(found != progress_.end(), "no tensor named {}", name);
  Progress& place = found->second;
  const std::span<const std::byte> bytes(values.data(), static_cast<std::size_t>(values.bytes()));
  DSTRAIN_CHECK(bytes.size() <= place.end - place.offset, "{} gets more than its shape holds",
                name);
  write_at(fd_.get(), place.offset, bytes, temporary_.string());
  place.offset += bytes.size();
}

void SafetensorsWriter::finish() {
  for (const auto& [name, place] : progress_) {
    DSTRAIN_CHECK(place.offset == place.end, "{} lacks {} bytes", name, place.end - place.offset);
  }
  if (::fsync(fd_.get()) != 0) fail_errno(errno, "fsync " + temporary_.string());
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail_errno(errno, "rename to " + path_.string());
  }
  fd_.reset();
  flush_directory(path_.parent_path());
}

}  // namespace dstrain::model
