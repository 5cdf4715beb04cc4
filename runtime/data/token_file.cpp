#include "runtime/data/token_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/conversion_command.h"
#include "runtime/data/megatron_set.h"
#include "runtime/data/tokenizer.h"

namespace dstrain::data {
namespace {

/// Other files of llm.c that users mistake for token files.
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

}  // namespace

TokenFile::TokenFile(const std::string& path, std::int64_t vocabulary)
    : TokenStream(path), file_(path), vocabulary_(vocabulary) {
  const auto magic = word_at<std::int32_t>(file_.bytes(), 0);
  for (const auto& [number, what] : other_magics) {
    if (magic == number) {
      fail(ErrorCode::input, "{}: this is {} of llm.c, not a token file", path, what);
    }
  }
  if (magic == llmc_u16.magic || magic == llmc_u32.magic) {
    open_llmc();
  } else if (path.ends_with(".bin")) {
    refuse_missing_index(path);
    refuse_raw_ids();
    fail(ErrorCode::input,
         "{}: unknown magic {}; a .bin token file starts with {} (u16 ids) or {} (u32 ids)", path,
         magic, llmc_u16.magic, llmc_u32.magic);
  } else {
    open_text();
  }
}

Checksum TokenFile::digest(std::int64_t blocks) const {
  return is_text_ ? text_checksum_ : sampled_checksum(file_.bytes(), blocks);
}

/// Explains u16 ids without a header, which nanoGPT's prepare.py and numpy's tofile() write.
void TokenFile::refuse_raw_ids() const {
  constexpr std::size_t looked_at_max = std::size_t{1} << 20;
  constexpr std::int64_t most = 2 * std::int64_t{std::numeric_limits<std::int32_t>::max()};
  const auto begin = file_.bytes().first(std::min(file_.bytes().size(), looked_at_max));
  if (begin.empty() || file_.bytes().size() % 2 != 0) return;
  for (std::size_t at = 0; at < begin.size(); at += 2) {
    if (word_at<std::uint16_t>(begin, at) >= vocabulary_) return;
  }
  const std::string file = shell_path(path());
  fail(ErrorCode::input,
       "{}: has no header; if it holds u16 ids, as nanoGPT's does, give it llm.c's{}{}", path(),
       bytes() > most ? ", which counts less than 2^31: split -b 4GB it, then for each" : "",
       command_below(fmt::format(
           "(python3 -c \"import os, struct, sys; sys.stdout.buffer.write(struct.pack('<3i', {}, "
           "{}, os.path.getsize(sys.argv[1]) // 2).ljust({}, bytes(1)))\" {}; cat {}) > {}",
           llmc_u16.magic, llmc_u16.version, llmc_header_bytes, file, file,
           shell_path(free_name(path().substr(0, path().rfind('.')) + "-llmc.bin")))));
}

void TokenFile::open_text() {
  if (vocabulary_ < byte_vocabulary) {
    fail(ErrorCode::input, "{}: the byte tokenizer needs a vocabulary of {}, the model has {}",
         path(), byte_vocabulary, vocabulary_);
  }
  check_utf8(file_.bytes(), path());
  text_checksum_ = checksum_of(file_.bytes());
  ids_ = IdArray(IdType::u8, file_.bytes());
  is_text_ = true;
}

void TokenFile::open_llmc() {
  const bool wide = word_at<std::int32_t>(file_.bytes(), 0) == llmc_u32.magic;
  const LlmcKind& kind = wide ? llmc_u32 : llmc_u16;
  if (bytes() < llmc_header_bytes) {
    fail(ErrorCode::input, "{}: {} bytes are too few for the header of a token file", path(),
         bytes());
  }
  const auto version = word_at<std::int32_t>(file_.bytes(), 4);
  if (version != kind.version) {
    fail(ErrorCode::input, "{}: version {} of magic {} is unknown; expected {}", path(), version,
         kind.magic, kind.version);
  }
  const IdType type = wide ? IdType::u32 : IdType::u16;
  const std::int64_t count = word_at<std::int32_t>(file_.bytes(), 8);
  if (count < 0 || bytes() != llmc_header_bytes + count * bytes_of(type)) {
    fail(ErrorCode::input, "{}: the header claims {} tokens of {} bytes, but the file has {} bytes",
         path(), count, bytes_of(type), bytes());
  }
  if (count == 0) fail(ErrorCode::input, "{}: holds no tokens", path());
  ids_ = IdArray(type, file_.bytes().subspan(llmc_header_bytes));
}

}  // namespace dstrain::data
