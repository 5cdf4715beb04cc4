#include <algorithm>
#include <limits>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/preprocess/byte_source.h"
#include "runtime/preprocess/plain_bytes.h"

namespace dstrain::preprocess {
namespace {

/// Base of both kinds of compressed files: a window of the file's own bytes.
class CompressedBytes : public ByteSource {
 public:
  explicit CompressedBytes(const std::string& path) : path_(path), file_(path) {}

  std::size_t read(std::span<char> bytes) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      if (input_.empty()) refill();
      const bool at_end = input_.empty();
      if (at_end && !inside_) break;
      // At the end of the file the library may still hold decompressed bytes.
      const std::size_t count = decompress(input_, bytes.subspan(done));
      if (at_end && count == 0) {
        fail(ErrorCode::input, "{}: its compressed data end too early, at byte {}", path_,
             consumed());
      }
      done += count;
    }
    return done;
  }
  void skip(std::int64_t bytes) override {
    std::vector<char> dropped(std::size_t{1} << 18);
    while (bytes > 0) {
      const auto wanted = static_cast<std::size_t>(std::min(bytes, std::ssize(dropped)));
      const std::size_t count = read(std::span(dropped).first(wanted));
      if (count == 0) return;
      bytes -= static_cast<std::int64_t>(count);
    }
  }
  [[nodiscard]] std::int64_t consumed() const override {
    return file_.consumed() - std::ssize(input_);
  }

 protected:
  /// Takes bytes from the front of `input` and writes to `output`. Returns how many it wrote.
  virtual std::size_t decompress(std::span<const char>& input, std::span<char> output) = 0;
  [[noreturn]] void fail_damaged(const char* reason) const {
    fail(ErrorCode::input, "{}: its compressed data are damaged before byte {}: {}", path_,
         consumed(), reason);
  }
  /// Sets whether a member or frame has begun and not ended.
  void set_inside(bool inside) { inside_ = inside; }

 private:
  void refill() {
    const std::size_t count = file_.read(buffer_);
    input_ = std::span<const char>(buffer_).first(count);
  }

  std::string path_;
  PlainBytes file_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 18);
  std::span<const char> input_;
  bool inside_ = true;
};

class GzipBytes final : public CompressedBytes {
 public:
  explicit GzipBytes(const std::string& path) : CompressedBytes(path) {
    constexpr int gzip_window = 15 + 16;
    DSTRAIN_CHECK(inflateInit2(&stream_, gzip_window) == Z_OK, "zlib does not start");
  }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;
  ~GzipBytes() override { inflateEnd(&stream_); }

 private:
  std::size_t decompress(std::span<const char>& input, std::span<char> output) override {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t room = std::min(output.size(), most);
    stream_.next_in = reinterpret_cast<z_const Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = static_cast<uInt>(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    input = input.last(stream_.avail_in);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      fail_damaged(stream_.msg == nullptr ? zError(status) : stream_.msg);
    }
    set_inside(status != Z_STREAM_END);
    if (status == Z_STREAM_END) inflateReset(&stream_);
    return room - stream_.avail_out;
  }

  z_stream stream_{};
};

struct ZstdTraits {
  using Raw = ZSTD_DStream*;
  static Raw null() noexcept { return nullptr; }
  static void release(Raw stream) noexcept { ZSTD_freeDStream(stream); }
};

class ZstdBytes final : public CompressedBytes {
 public:
  explicit ZstdBytes(const std::string& path) : CompressedBytes(path) {
    DSTRAIN_CHECK(static_cast<bool>(stream_), "libzstd does not start");
  }

 private:
  std::size_t decompress(std::span<const char>& input, std::span<char> output) override {
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output.data(), output.size(), 0};
    const std::size_t hint = ZSTD_decompressStream(stream_.get(), &out, &in);
    input = input.subspan(in.pos);
    if (ZSTD_isError(hint) != 0) fail_damaged(ZSTD_getErrorName(hint));
    set_inside(hint != 0);
    return out.pos;
  }

  UniqueHandle<ZstdTraits> stream_{ZSTD_createDStream()};
};

std::unique_ptr<ByteSource> open_compressed(const InputFile& file) {
  if (file.compression == Compression::gzip) return std::make_unique<GzipBytes>(file.path);
  return std::make_unique<ZstdBytes>(file.path);
}

}  // namespace
}  // namespace dstrain::preprocess

extern "C" __attribute__((visibility("default"))) dstrain::preprocess::ByteSource*
dstrain_open_compressed_bytes_1(const dstrain::preprocess::InputFile* file) {
  return dstrain::preprocess::open_compressed(*file).release();
}
