#include "runtime/data/token_stream.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::int64_t llmc_header_bytes = 1024;
constexpr std::int32_t magic_u16 = 20240520;
constexpr std::int32_t magic_u32 = 20240801;

/// Other files of llm.c, which people mistake for token files.
constexpr std::array<std::pair<std::int32_t, std::string_view>, 5> other_magics{
    {{20240522, "an evaluation set"},
     {20240326, "a model"},
     {20240327, "a debug state"},
     {20240328, "a tokenizer"},
     {20240527, "an optimizer state"}}};

template <class Word>
Word word_at(std::span<const std::byte> bytes, std::size_t offset) {
  Word word{};
  if (offset + sizeof word <= bytes.size()) std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// Maps the file after refusing paths that mean something else.
MappedFile open(const std::string& path) {
  const std::string stem =
      path.ends_with(".bin") || path.ends_with(".idx") ? path.substr(0, path.size() - 4) : path;
  if (exists(stem + ".idx") && exists(stem + ".bin")) {
    fail(ErrorCode::input,
         "{}: an indexed Megatron data set ({}.bin and .idx) is not read; give UTF-8 text or "
         "an llm.c .bin file",
         path, stem);
  }
  return MappedFile(path);
}

/// Copies ids of type `Id`, which may lie unaligned, and returns the index of the first that is not
/// below the vocabulary, or -1.
template <class Id>
std::int64_t copy_ids(std::span<const std::byte> bytes,
                      std::int64_t vocabulary,
                      std::span<std::int32_t> tokens) {
  // Ids of 2^31 and more wrap to negative numbers, which as unsigned are beyond any vocabulary.
  const auto limit = static_cast<std::uint32_t>(
      std::min<std::int64_t>(vocabulary, std::numeric_limits<std::int32_t>::max()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Id id{};
    std::memcpy(&id, bytes.data() + i * sizeof(Id), sizeof(Id));
    if (id >= limit) return static_cast<std::int64_t>(i);
    tokens[i] = static_cast<std::int32_t>(id);
  }
  return -1;
}

}  // namespace

TokenStream::TokenStream(const std::string& path, const TokenOptions& options)
    : path_(path), file_(open(path)), vocabulary_(options.vocabulary) {
  const auto magic = word_at<std::int32_t>(file_.bytes(), 0);
  for (const auto& [number, what] : other_magics) {
    if (magic == number) {
      fail(ErrorCode::input, "{}: this is {} of llm.c, not a token file", path, what);
    }
  }
  if (magic == magic_u16 || magic == magic_u32) {
    open_llmc();
  } else if (path.ends_with(".bin")) {
    fail(ErrorCode::input,
         "{}: unknown magic {}; a .bin token file starts with {} (u16 ids) or {} (u32 ids)", path,
         magic, magic_u16, magic_u32);
  } else {
    open_text(options);
  }
}

void TokenStream::open_text(const TokenOptions& options) {
  if (options.tokenizer != "byte") {
    fail(ErrorCode::input, "tokenizer '{}': only 'byte' is implemented", options.tokenizer);
  }
  if (vocabulary_ < byte_vocabulary) {
    fail(ErrorCode::input, "{}: the byte tokenizer needs a vocabulary of {}, the model has {}",
         path_, byte_vocabulary, vocabulary_);
  }
  if (const auto offset = find_invalid_utf8(file_.bytes())) {
    fail(ErrorCode::input, "{}: not UTF-8 text: byte {} (0x{:02x}) starts no valid character",
         path_, *offset, std::to_integer<unsigned>(file_.bytes()[*offset]));
  }
  count_ = static_cast<std::int64_t>(file_.bytes().size());
}

void TokenStream::open_llmc() {
  const auto bytes = file_.bytes();
  const auto file_bytes = static_cast<std::int64_t>(bytes.size());
  const bool wide = word_at<std::int32_t>(bytes, 0) == magic_u32;
  if (file_bytes < llmc_header_bytes) {
    fail(ErrorCode::input, "{}: {} bytes are too few for the header of a token file", path_,
         file_bytes);
  }
  const auto version = word_at<std::int32_t>(bytes, 4);
  if (version != (wide ? 7 : 1)) {
    fail(ErrorCode::input, "{}: version {} of magic {} is unknown; {} is read", path_, version,
         wide ? magic_u32 : magic_u16, wide ? 7 : 1);
  }
  token_bytes_ = wide ? 4 : 2;
  data_offset_ = llmc_header_bytes;
  count_ = word_at<std::int32_t>(bytes, 8);
  const std::int64_t expected = llmc_header_bytes + count_ * token_bytes_;
  if (count_ < 0 || file_bytes != expected) {
    fail(ErrorCode::input, "{}: the header claims {} tokens of {} bytes, but the file has {} bytes",
         path_, count_, token_bytes_, file_bytes);
  }
  if (count_ == 0) fail(ErrorCode::input, "{}: holds no tokens", path_);
}

void TokenStream::read(std::int64_t begin, std::span<std::int32_t> tokens) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  DSTRAIN_CHECK(begin >= 0 && begin <= count_ && count <= count_ - begin, "tokens {}+{} of {}",
                begin, count, count_);
  const auto bytes =
      file_.bytes().subspan(static_cast<std::size_t>(data_offset_ + begin * token_bytes_));
  const std::int64_t bad = token_bytes_ == 1 ? copy_ids<std::uint8_t>(bytes, vocabulary_, tokens)
                           : token_bytes_ == 2
                               ? copy_ids<std::uint16_t>(bytes, vocabulary_, tokens)
                               : copy_ids<std::uint32_t>(bytes, vocabulary_, tokens);
  if (bad < 0) return;
  std::uint32_t id = 0;
  std::memcpy(&id, bytes.data() + bad * token_bytes_, static_cast<std::size_t>(token_bytes_));
  fail(ErrorCode::input, "{}: token {} is {}, but the model's vocabulary ends at {}", path_,
       begin + bad, id, vocabulary_ - 1);
}

}  // namespace dstrain::data
