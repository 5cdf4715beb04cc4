#include "runtime/preprocess/shard_writer.h"

#include <array>
#include <cerrno>
#include <vector>

#include <fcntl.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/data/megatron_set.h"
#include "runtime/data/token_file.h"
#include "runtime/os/fd_io.h"

namespace dstrain::preprocess {

using data::ShardFormat;

namespace {

/// Whether ids take four bytes instead of two.
bool is_wide(ShardFormat format, std::int64_t vocabulary) {
  return format == ShardFormat::megatron ? vocabulary >= 65500 : vocabulary > 1 << 16;
}

/// A file that gets its name once it is complete.
class NamelessFile {
 public:
  explicit NamelessFile(std::string path)
      : path_(std::move(path)),
        fd_(::open(part().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (!fd_) fail_errno(errno, "create " + part());
  }

  void write(std::span<const std::byte> bytes) { write_fully(fd_.get(), bytes, path_); }
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
    write_fully_at(fd_.get(), offset, bytes, path_);
  }
  void finish() {
    flush_file(fd_.get(), path_);
    close_file(std::move(fd_), path_);
    std::filesystem::rename(part(), path_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[nodiscard]] std::string part() const { return path_ + ".part"; }

  std::string path_;
  UniqueFd fd_;
};

/// Writes ids of two or four bytes, one after another.
class IdWriter {
 public:
  IdWriter(NamelessFile& file, bool wide) : file_(file), wide_(wide) {}

  void add(std::span<const std::int32_t> ids) {
    if (wide_) return file_.write(std::as_bytes(ids));
    narrow_.assign(ids.begin(), ids.end());
    file_.write(std::as_bytes(std::span(narrow_)));
  }

 private:
  NamelessFile& file_;
  bool wide_;
  std::vector<std::uint16_t> narrow_;
};

class LlmcShard : public ShardWriter {
 public:
  LlmcShard(const std::string& prefix, std::int64_t vocabulary)
      : wide_(is_wide(ShardFormat::llmc, vocabulary)), file_(prefix + ".bin"), ids_(file_, wide_) {
    file_.write(std::as_bytes(std::span(header_)));
  }

  void add(std::span<const std::int32_t> ids) override {
    ids_.add(ids);
    tokens_ += std::ssize(ids);
  }
  void end_document() override {}
  void finish() override {
    DSTRAIN_CHECK(tokens_ <= shard_tokens_max, "{} tokens in a shard", tokens_);
    const data::LlmcKind& kind = wide_ ? data::llmc_u32 : data::llmc_u16;
    header_[0] = kind.magic;
    header_[1] = kind.version;
    header_[2] = static_cast<std::int32_t>(tokens_);
    file_.write_at(0, std::as_bytes(std::span(header_)));
    file_.finish();
  }

 private:
  bool wide_;
  NamelessFile file_;
  IdWriter ids_;
  std::array<std::int32_t, data::llmc_header_bytes / 4> header_{};
  std::int64_t tokens_ = 0;
};

class MegatronShard : public ShardWriter {
 public:
  MegatronShard(const std::string& prefix, std::int64_t vocabulary)
      : wide_(is_wide(ShardFormat::megatron, vocabulary)),
        file_(prefix + ".bin"),
        index_(prefix + ".idx"),
        ids_(file_, wide_) {}

  void add(std::span<const std::int32_t> ids) override {
    ids_.add(ids);
    length_ += std::ssize(ids);
  }
  void end_document() override {
    if (length_ > shard_tokens_max) {
      fail(ErrorCode::input,
           "{}: a document of {} tokens exceeds the limit of a Megatron index, {}; --format "
           "llmc has no such limit",
           file_.path(), length_, shard_tokens_max);
    }
    lengths_.push_back(static_cast<std::int32_t>(length_));
    length_ = 0;
  }
  void finish() override {
    DSTRAIN_CHECK(length_ == 0, "{} tokens after the last document", length_);
    file_.finish();
    write_index();
    index_.finish();
  }

 private:
  template <class Number>
  void write_number(Number number) {
    index_.write(std::as_bytes(std::span(&number, 1)));
  }
  void write_index() {
    index_.write(std::as_bytes(std::span(data::megatron_magic)));
    write_number(std::uint64_t{1});
    write_number(data::megatron_code(wide_ ? data::IdType::i32 : data::IdType::u16));
    write_number(static_cast<std::uint64_t>(lengths_.size()));
    write_number(static_cast<std::uint64_t>(lengths_.size() + 1));
    index_.write(std::as_bytes(std::span(lengths_)));
    std::vector<std::int64_t> words(1);
    for (const std::int32_t length : lengths_) {
      words.push_back(words.back() + std::int64_t{length} * (wide_ ? 4 : 2));
    }
    index_.write(std::as_bytes(std::span(words)).first((words.size() - 1) * sizeof words[0]));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::int64_t>(i);
    index_.write(std::as_bytes(std::span(words)));
  }

  bool wide_;
  NamelessFile file_;
  NamelessFile index_;
  IdWriter ids_;
  std::vector<std::int32_t> lengths_;  ///< of the documents
  std::int64_t length_ = 0;            ///< of the document that has not ended
};

}  // namespace

Bytes shard_bytes(ShardFormat format, std::int64_t vocabulary, std::int64_t tokens) {
  const Bytes header = format == ShardFormat::llmc ? data::llmc_header_bytes : 0;
  return header + tokens * (is_wide(format, vocabulary) ? 4 : 2);
}

std::unique_ptr<ShardWriter> create_shard(ShardFormat format,
                                          const std::filesystem::path& prefix,
                                          std::int64_t vocabulary) {
  if (format == ShardFormat::megatron) {
    return std::make_unique<MegatronShard>(prefix.string(), vocabulary);
  }
  return std::make_unique<LlmcShard>(prefix.string(), vocabulary);
}

}  // namespace dstrain::preprocess
