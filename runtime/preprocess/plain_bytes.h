#pragma once
#include <cstdint>
#include <string>

#include "runtime/base/unique_handle.h"
#include "runtime/preprocess/byte_source.h"

namespace dstrain::preprocess {

/// The bytes of a file as they are on disk.
class PlainBytes : public ByteSource {
 public:
  /// Throws Error{input}.
  explicit PlainBytes(const std::string& path);

  std::size_t read(std::span<char> bytes) override;
  void skip(std::int64_t bytes) override { place_ += bytes; }
  [[nodiscard]] std::int64_t consumed() const override { return place_; }

 private:
  std::string path_;
  UniqueFd fd_;
  std::int64_t place_ = 0;
};

}  // namespace dstrain::preprocess
