#include "runtime/data/token_set.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>

#include "runtime/base/checksum.h"
#include "runtime/base/error.h"
#include "runtime/os/fd_io.h"

namespace dstrain::data {
namespace {

struct Header {
  std::array<char, 8> magic{'D', 'S', 'T', 'R', 'T', 'O', 'K', 'S'};
  std::uint32_t version = 1;
  std::uint32_t id_bytes = 1;
  RecordKind kind = RecordKind::text;
  std::uint32_t masked = 0;
  std::int64_t tokens = 0;
  std::int64_t records = 0;
};
static_assert(sizeof(Header) == 40);

constexpr std::int64_t word_bytes = 8;
constexpr std::size_t buffer_bytes = std::size_t{1} << 20;

std::int64_t mask_words(std::int64_t tokens) {
  return (tokens + 63) / 64;
}

std::int64_t narrowest_id_bytes(std::int64_t vocabulary) {
  if (vocabulary <= 1 << 8) return 1;
  return vocabulary <= 1 << 16 ? 2 : 4;
}

IdType id_type(std::int64_t id_bytes) {
  if (id_bytes == 1) return IdType::u8;
  return id_bytes == 2 ? IdType::u16 : IdType::u32;
}

template <class Word>
std::span<const Word> words(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const Word*>(bytes.data()), bytes.size() / sizeof(Word)};
}

/// Returns the file size that a header implies, in bytes; -1 if it is impossible.
std::int64_t claimed_bytes(const Header& header, std::int64_t most) {
  const bool known = header.magic == Header{}.magic && header.version == Header{}.version &&
                     (header.id_bytes == 1 || header.id_bytes == 2 || header.id_bytes == 4) &&
                     header.kind <= RecordKind::messages && header.masked <= 1;
  if (!known || header.tokens < 0 || header.tokens > most || header.records < 0 ||
      header.records > most) {
    return -1;
  }
  return static_cast<std::int64_t>(sizeof header) +
         round_up(header.tokens * header.id_bytes, word_bytes) +
         word_bytes *
             ((header.masked == 1 ? mask_words(header.tokens) : 0) + header.records + 1 + 1);
}

UniqueFd create(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) fail_errno(errno, "create " + path.string());
  return fd;
}

}  // namespace

TokenSet::TokenSet(std::filesystem::path path, MappedFile file)
    : path_(std::move(path)), file_(std::move(file)) {}

Result<TokenSet> TokenSet::open(const std::filesystem::path& path) {
  try {
    TokenSet set(path, MappedFile(path));
    std::string damage = set.read();
    if (!damage.empty()) return Failure{path.string() + ": " + damage};
    return set;
  } catch (const Error& error) {
    return Failure{error.what()};
  }
}

std::string TokenSet::read() {
  const auto bytes = file_.bytes();
  Header header;
  if (bytes.size() < sizeof header) return "is cut short";
  std::memcpy(&header, bytes.data(), sizeof header);
  if (claimed_bytes(header, std::ssize(bytes)) != std::ssize(bytes)) {
    return "its header does not describe it";
  }
  Checksum checksum = 0;
  const std::size_t end = bytes.size() - sizeof checksum;
  std::memcpy(&checksum, bytes.data() + end, sizeof checksum);
  if (checksum_of(bytes.first(end)) != checksum) return "its checksum differs";

  const auto id_bytes = static_cast<std::size_t>(header.tokens * header.id_bytes);
  const auto mask_bytes =
      static_cast<std::size_t>(header.masked == 1 ? mask_words(header.tokens) * word_bytes : 0);
  const std::size_t mask_at = sizeof header + static_cast<std::size_t>(round_up(
                                                  header.tokens * header.id_bytes, word_bytes));
  kind_ = header.kind;
  records_ = header.records;
  ids_ = IdArray(id_type(header.id_bytes), bytes.subspan(sizeof header, id_bytes));
  mask_ = words<std::uint64_t>(bytes.subspan(mask_at, mask_bytes));
  starts_ = words<std::int64_t>(bytes.first(end).subspan(mask_at + mask_bytes));
  return "";
}

TokenSetWriter::TokenSetWriter(std::filesystem::path path, RecordKind kind, std::int64_t vocabulary)
    : path_(std::move(path)),
      kind_(kind),
      id_bytes_(narrowest_id_bytes(vocabulary)),
      fd_(create(path_)) {
  const Header to_come;
  write(std::as_bytes(std::span(&to_come, 1)));
}

void TokenSetWriter::add(const EncodedRecord& record) {
  write_ids(record.ids);
  const std::int64_t first = starts_.back();
  starts_.push_back(first + std::ssize(record.ids));
  if (kind_ == RecordKind::text) return;
  mask_.resize(static_cast<std::size_t>(mask_words(starts_.back())));
  for (const TokenRange& range : record.counted) {
    for (std::int64_t t = first + range.begin; t < first + range.end; ++t) {
      mask_[static_cast<std::size_t>(t / 64)] |= std::uint64_t{1} << (t % 64);
    }
  }
}

void TokenSetWriter::extend(std::span<const std::int32_t> ids) {
  DSTRAIN_CHECK(kind_ == RecordKind::text && starts_.size() > 1, "no text to go on");
  write_ids(ids);
  starts_.back() += std::ssize(ids);
}

void TokenSetWriter::write_ids(std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    DSTRAIN_CHECK(id >= 0 && (id_bytes_ == 4 || id < 1 << (8 * id_bytes_)), "id {}", id);
    write(std::as_bytes(std::span(&id, 1)).first(static_cast<std::size_t>(id_bytes_)));
  }
}

void TokenSetWriter::finish() {
  const std::int64_t tokens = starts_.back();
  const Header header{.id_bytes = static_cast<std::uint32_t>(id_bytes_),
                      .kind = kind_,
                      .masked = kind_ == RecordKind::text ? 0U : 1U,
                      .tokens = tokens,
                      .records = std::ssize(starts_) - 1};
  const std::array<std::byte, word_bytes> zeros{};
  write(std::span(zeros).first(
      static_cast<std::size_t>(round_up(tokens * id_bytes_, word_bytes) - tokens * id_bytes_)));
  write(std::as_bytes(std::span(mask_)));
  write(std::as_bytes(std::span(starts_)));
  flush();
  write_fully_at(fd_.get(), 0, std::as_bytes(std::span(&header, 1)), path_.string());
  const Checksum checksum = checksum_of(MappedFile(path_).bytes());
  write(std::as_bytes(std::span(&checksum, 1)));
  flush();
  flush_file(fd_.get(), path_.string());
  close_file(std::move(fd_), path_.string());
}

void TokenSetWriter::write(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= buffer_bytes) flush();
}

void TokenSetWriter::flush() {
  write_fully(fd_.get(), buffer_, path_.string());
  buffer_.clear();
}

}  // namespace dstrain::data
