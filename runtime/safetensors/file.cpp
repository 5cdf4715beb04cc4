#include "runtime/safetensors/file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/os/fd_io.h"
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"

namespace dstrain::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::uint64_t header_bytes_max = 100'000'000;

/// Reads exactly `size` bytes at `offset`, which the caller has checked to lie within the file.
void read_at(
    int fd, std::uint64_t offset, void* target, std::size_t size, const std::string& name) {
  const std::span bytes(static_cast<std::byte*>(target), size);
  if (read_fully_at(fd, offset, bytes, name) < size) {
    fail(ErrorCode::io, "{}: the file became shorter while it was read", name);
  }
}

}  // namespace

File::File(UniqueFd fd, std::string name) : fd_(std::move(fd)), name_(std::move(name)) {
  const auto file_bytes = static_cast<std::uint64_t>(regular_bytes(fd_.get(), name_));
  if (file_bytes < 8) {
    fail(ErrorCode::input, "{}: {} bytes are too few for a safetensors file", name_, file_bytes);
  }
  std::uint64_t header_bytes = 0;
  read_at(fd_.get(), 0, &header_bytes, sizeof header_bytes, name_);
  if (header_bytes > header_bytes_max) {
    fail(ErrorCode::input,
         "{}: the header claims {} bytes, over the {} allowed; is it a safetensors file?", name_,
         header_bytes, header_bytes_max);
  }
  if (header_bytes > file_bytes - 8) {
    fail(ErrorCode::input, "{}: the header claims {} bytes, but the file has {}; is it complete?",
         name_, header_bytes, file_bytes);
  }
  std::string header(static_cast<std::size_t>(header_bytes), '\0');
  read_at(fd_.get(), 8, header.data(), header.size(), name_);
  if (!header.starts_with('{')) {
    fail(ErrorCode::input, "{}: the header does not start with '{{'; is it a safetensors file?",
         name_);
  }
  data_offset_ = 8 + header_bytes;
  entries_ = parse_header(header, file_bytes - data_offset_, name_);
}

void File::read(const Entry& entry, std::int64_t begin, std::span<float> values) const {
  const auto count = static_cast<std::int64_t>(values.size());
  DSTRAIN_CHECK(begin >= 0 && begin <= entry.numel && count <= entry.numel - begin,
                "elements {}+{} of {} with {}", begin, count, entry.name, entry.numel);
  if (!is_readable_dtype(entry.dtype)) {
    fail(ErrorCode::input, "{}: tensor '{}' is {}; only F64, F32, F16 and BF16 are read", name_,
         printable(entry.name), printable(entry.dtype));
  }
  const std::uint64_t offset = data_offset_ + entry.begin;
  const auto first = static_cast<std::uint64_t>(begin);
  if (entry.dtype == "F32") {
    read_at(fd_.get(), offset + 4 * first, values.data(), values.size_bytes(), name_);
    return;
  }
  const auto convert = [&]<class Stored>(Stored /*type*/, auto to_value) {
    std::array<Stored, 4096> piece{};
    for (std::size_t done = 0; done < values.size(); done += piece.size()) {
      const std::size_t size = std::min(piece.size(), values.size() - done);
      read_at(fd_.get(), offset + sizeof(Stored) * (first + done), piece.data(),
              sizeof(Stored) * size, name_);
      std::transform(piece.begin(), piece.begin() + size,
                     values.begin() + static_cast<std::ptrdiff_t>(done), to_value);
    }
  };
  if (entry.dtype == "F64") {
    convert(double{}, [](double value) { return static_cast<float>(value); });
  } else if (entry.dtype == "F16") {
    convert(std::uint16_t{}, [](std::uint16_t bits) { return to_float(Float16{bits}); });
  } else {
    convert(std::uint16_t{}, [](std::uint16_t bits) { return to_float(BFloat16{bits}); });
  }
}

bool is_readable_dtype(std::string_view dtype) {
  return dtype == "F64" || dtype == "F32" || dtype == "F16" || dtype == "BF16";
}

}  // namespace dstrain::safetensors
