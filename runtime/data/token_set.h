#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"
#include "runtime/data/encode_record.h"
#include "runtime/data/id_array.h"
#include "runtime/data/record_kind.h"
#include "runtime/os/mapped_file.h"

namespace dstrain::data {

/// The tokens of all records of a file, with the records' starts and the tokens to learn, in a
/// mapped file of dstrain's own format. Immutable, so threads may share one; move-only.
///
/// The file, little-endian: "DSTRTOKS"; u32 version, id bytes (1, 2 or 4), kind of record and
/// whether there is a mask; i64 tokens and records; the ids, padded to 8 bytes; the mask, u64 words
/// of which bit t % 64 of word t / 64 says whether token t counts; i64 starts of the records and
/// the number of tokens; and a checksum (XXH3) of all before it.
class TokenSet {
 public:
  /// Reads and checks the whole file. The failure describes the damage.
  static Result<TokenSet> open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] RecordKind kind() const { return kind_; }
  [[nodiscard]] const IdArray& ids() const { return ids_; }
  [[nodiscard]] std::int64_t records() const { return records_; }
  /// Returns the first token of a record; for record `records()`, the number of tokens.
  [[nodiscard]] std::int64_t start(std::int64_t record) const {
    return starts_[static_cast<std::size_t>(record)];
  }
  [[nodiscard]] bool counts(std::int64_t token) const {
    return mask_.empty() ||
           ((mask_[static_cast<std::size_t>(token / 64)] >> (token % 64)) & 1U) != 0;
  }

 private:
  TokenSet(std::filesystem::path path, MappedFile file);
  /// Returns the damage of the file, or "".
  std::string read();

  std::filesystem::path path_;
  MappedFile file_;
  RecordKind kind_ = RecordKind::text;
  IdArray ids_;
  std::int64_t records_ = 0;
  std::span<const std::uint64_t> mask_;  ///< empty: all tokens count
  std::span<const std::int64_t> starts_;
};

/// Writes a token set file, record by record. Memory: 8 bytes per record and a bit per token.
class TokenSetWriter {
 public:
  /// Ids will be below `vocabulary`. A file at `path` is overwritten. Throws Error{io}.
  TokenSetWriter(std::filesystem::path path, RecordKind kind, std::int64_t vocabulary);
  /// @p counted tokens of the record that count; ignored for a text, of which all count.
  void add(const EncodedRecord& record);
  /// Appends tokens to the record that was added last, for a text.
  void extend(std::span<const std::int32_t> ids);
  /// Completes the file and flushes it to disk.
  void finish();

 private:
  void write_ids(std::span<const std::int32_t> ids);
  void write(std::span<const std::byte> bytes);
  void flush();

  std::filesystem::path path_;
  RecordKind kind_;
  std::int64_t id_bytes_;
  UniqueFd fd_;
  std::vector<std::byte> buffer_;
  std::vector<std::uint64_t> mask_;
  std::vector<std::int64_t> starts_{0};
};

}  // namespace dstrain::data
