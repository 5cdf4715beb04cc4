#include "runtime/data/megatron_set.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/sample_order.h"

namespace dstrain::data {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view old_magic = "TNTIDX\0\0"sv;
constexpr std::int64_t header_bytes = 34;
/// Bytes per sequence: an i32 length and an i64 offset; the offsets follow all lengths.
constexpr std::int64_t length_bytes = 4;
constexpr std::int64_t sequence_bytes = 12;
constexpr std::int64_t document_bytes = 8;

constexpr std::array<IdType, 8> types{IdType::u8,  IdType::i8,  IdType::i16, IdType::i32,
                                      IdType::i64, IdType::f64, IdType::f32, IdType::u16};

/// Reads numbers of an index, which are not aligned.
class IndexReader {
 public:
  IndexReader(std::span<const std::byte> bytes, const std::string& path)
      : bytes_(bytes), path_(path) {
    check_head();
    sequences_ = count_at(18, "sequences");
    documents_ = count_at(26, "document indices");
    check_size();
  }

  [[nodiscard]] IdType type() const {
    const auto code = at<std::uint8_t>(17);
    if (code < 1 || code > types.size()) {
      fail(ErrorCode::input, "{}: dtype code {} is unknown; expected 1 to {}", path_, code,
           types.size());
    }
    return types.at(code - std::size_t{1});
  }
  [[nodiscard]] std::int64_t sequences() const { return sequences_; }
  [[nodiscard]] std::int64_t documents() const { return documents_; }
  [[nodiscard]] std::int64_t length(std::int64_t sequence) const {
    return at<std::int32_t>(header_bytes + length_bytes * sequence);
  }
  /// Returns the offset of a sequence in the .bin, in bytes.
  [[nodiscard]] std::int64_t offset(std::int64_t sequence) const {
    return at<std::int64_t>(header_bytes + length_bytes * sequences_ + 8 * sequence);
  }
  /// Returns the sequence with which a document begins.
  [[nodiscard]] std::int64_t document(std::int64_t index) const {
    return at<std::int64_t>(header_bytes + sequence_bytes * sequences_ + document_bytes * index);
  }

 private:
  template <class Number>
  [[nodiscard]] Number at(std::int64_t offset) const {
    Number number{};
    std::memcpy(&number, bytes_.data() + offset, sizeof number);
    return number;
  }

  void check_head() const {
    const auto begins_with = [&](std::string_view head) {
      return bytes_.size() >= head.size() &&
             std::memcmp(bytes_.data(), head.data(), head.size()) == 0;
    };
    if (begins_with(old_magic)) {
      fail(ErrorCode::input,
           "{}: is an index of fairseq's older format, which is not supported; rebuild the set "
           "with Megatron's tools/preprocess_data.py",
           path_);
    }
    if (!begins_with(megatron_magic))
      fail(ErrorCode::input, "{}: is not the index of a Megatron set", path_);
    if (std::ssize(bytes_) < header_bytes) {
      fail(ErrorCode::input, "{}: {} bytes are too few for the header of an index", path_,
           bytes_.size());
    }
    if (const auto version = at<std::uint64_t>(9); version != 1) {
      fail(ErrorCode::input, "{}: version {} is unknown; expected 1", path_, version);
    }
  }

  [[nodiscard]] std::int64_t count_at(std::int64_t offset, std::string_view what) const {
    const auto count = at<std::int64_t>(offset);
    // Each entry takes 8 bytes or more, so that later products cannot overflow.
    if (count < 0 || count > std::ssize(bytes_) / 8) {
      fail(ErrorCode::input, "{}: byte {}: {} {} do not fit into the {} bytes of the file", path_,
           offset, count, what, bytes_.size());
    }
    return count;
  }

  void check_size() const {
    const std::int64_t size =
        header_bytes + sequence_bytes * sequences_ + document_bytes * documents_;
    if (sequences_ > 0 && std::ssize(bytes_) == size + sequences_) {
      fail(ErrorCode::input, "{}: has sequence modes; multimodal sets are not supported", path_);
    }
    if (std::ssize(bytes_) != size) {
      fail(ErrorCode::input,
           "{}: {} sequences and {} document indices take {} bytes, but the file has {}", path_,
           sequences_, documents_, size, bytes_.size());
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& path_;
  std::int64_t sequences_ = 0;
  std::int64_t documents_ = 0;
};

/// Adds up the sequences, which must follow each other without gaps. Calls `reach(sequence,
/// tokens)` for each with the number of tokens before it.
template <class Reach>
std::int64_t add_sequences(const IndexReader& index, const std::string& path, Reach&& reach) {
  const std::int64_t id_bytes = bytes_of(index.type());
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < index.sequences(); ++i) {
    if (index.length(i) < 0) {
      fail(ErrorCode::input, "{}: sequence {} has a length of {}", path, i, index.length(i));
    }
    if (index.offset(i) != tokens * id_bytes) {
      fail(ErrorCode::input,
           "{}: sequence {} begins at byte {} of the .bin, but those before it end at {}", path, i,
           index.offset(i), tokens * id_bytes);
    }
    reach(i, tokens);
    tokens += index.length(i);
  }
  reach(index.sequences(), tokens);
  return tokens;
}

void check_documents(const IndexReader& index, const std::string& path) {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < index.documents(); ++i) {
    const std::int64_t first = index.document(i);
    if (first < before || first > index.sequences() || (i == 0 && first != 0)) {
      fail(ErrorCode::input,
           "{}: document index {} is {}; the first is 0, and they rise to the {} sequences", path,
           i, first, index.sequences());
    }
    before = first;
  }
  if (index.documents() > 0 && before == index.sequences()) return;
  fail(ErrorCode::input, "{}: the document indices end at {}, and there are {} sequences", path,
       before, index.sequences());
}

}  // namespace

std::uint8_t megatron_code(IdType type) {
  return static_cast<std::uint8_t>(std::ranges::find(types, type) - types.begin() + 1);
}

MegatronIndex parse_megatron_index(std::span<const std::byte> bytes,
                                   const std::string& path,
                                   std::span<const double> split) {
  const IndexReader index(bytes, path);
  MegatronIndex parsed;
  parsed.type = index.type();
  check_documents(index, path);
  std::vector<std::int64_t> ends;  // of the parts, in sequences
  if (!split.empty()) {
    const auto [training, held_out] = split_samples(index.sequences(), split);
    ends = {0, training.count, training.count + held_out.count, index.sequences()};
  }
  std::int64_t next = 0;
  parsed.document_starts.reserve(static_cast<std::size_t>(index.documents()));
  parsed.tokens = add_sequences(index, path, [&](std::int64_t sequence, std::int64_t tokens) {
    for (; next < index.documents() && index.document(next) == sequence; ++next) {
      parsed.document_starts.push_back(tokens);
    }
    while (parsed.cuts.size() < ends.size() && ends[parsed.cuts.size()] == sequence) {
      parsed.cuts.push_back(tokens);
    }
  });
  return parsed;
}

std::optional<std::string> find_megatron_prefix(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path prefix = path;
  const bool names_half = path.extension() == ".bin" || path.extension() == ".idx";
  if (names_half) prefix.replace_extension();
  if (!names_half && std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  if (!std::filesystem::exists(prefix.string() + ".idx", ignored)) return std::nullopt;
  return prefix.string();
}

void refuse_missing_index(const std::filesystem::path& path) {
  std::error_code ignored;
  std::filesystem::path prefix = path;
  if (path.extension() == ".bin") prefix.replace_extension();
  if (prefix == path && std::filesystem::exists(path, ignored)) return;
  const std::string name = prefix.string();
  if (!name.ends_with("_document") || !std::filesystem::exists(name + ".bin", ignored) ||
      std::filesystem::exists(name + ".idx", ignored)) {
    return;
  }
  fail(ErrorCode::input,
       "{0}.bin: is named as the ids of a Megatron set, and its index {0}.idx is missing beside "
       "it; copy both files",
       name);
}

MegatronSet::MegatronSet(const std::string& prefix,
                         std::int64_t vocabulary,
                         std::span<const double> split)
    : TokenStream(prefix + ".bin"), file_(path()), vocabulary_(vocabulary) {
  const std::string index_path = prefix + ".idx";
  const MappedFile index_file(index_path);
  index_bytes_ = std::ssize(index_file.bytes());
  index_checksum_ = checksum_of(index_file.bytes());
  MegatronIndex index = parse_megatron_index(index_file.bytes(), index_path, split);
  const std::int64_t expected = index.tokens * bytes_of(index.type);
  if (expected != std::ssize(file_.bytes())) {
    fail(ErrorCode::input, "{}: the index claims {} tokens of {} bytes, but the file has {} bytes",
         path(), index.tokens, bytes_of(index.type), file_.bytes().size());
  }
  document_starts_ = std::move(index.document_starts);
  cuts_ = std::move(index.cuts);
  ids_ = IdArray(index.type, file_.bytes());
}

Checksum MegatronSet::digest(std::int64_t blocks) const {
  return combined(std::array{index_checksum_, sampled_checksum(file_.bytes(), blocks)});
}

std::int64_t MegatronSet::next_document(std::int64_t token) const {
  const auto next = std::ranges::upper_bound(document_starts_, token);
  return next == document_starts_.end() ? size() : *next;
}

}  // namespace dstrain::data
