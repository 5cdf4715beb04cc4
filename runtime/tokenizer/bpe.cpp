#include "runtime/tokenizer/bpe.h"

#include "runtime/base/utf8.h"
#include "runtime/tokenizer/byte_level.h"

namespace dstrain::tokenizer {
namespace {

std::uint64_t joint(char32_t left, char32_t right) {
  return std::uint64_t{left} << 32 | right;
}

/// Returns the unit of a token that is a single character.
std::optional<char32_t> unit_of(std::string_view token, BpeUnit unit) {
  if (token.empty()) return std::nullopt;
  const Character character = first_character(token);
  if (character.size != token.size()) return std::nullopt;
  if (unit == BpeUnit::character) return character.code;
  const auto bytes = bytes_of_byte_level(token);
  if (!bytes) return std::nullopt;
  return static_cast<unsigned char>(bytes->front());
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary,
         const std::vector<Merge>& merges,
         const BpeSettings& settings)
    : settings_(settings), merges_(merges), byte_tokens_(vocabulary) {
  direct_id_of_.fill(-1);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string* const token = vocabulary.token(id);
    if (token == nullptr) continue;
    const auto unit = unit_of(*token, settings.unit);
    if (!unit) continue;
    if (*unit < direct_units) {
      direct_id_of_[*unit] = id;
    } else {
      id_of_.emplace(*unit, id);
    }
  }
  if (settings.ignore_merges) collect_whole_words(vocabulary);
  if (settings.unit == BpeUnit::character) collect_joints(vocabulary, merges);
}

void Bpe::collect_whole_words(const Vocabulary& vocabulary) {
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    const std::string* const token = vocabulary.token(id);
    if (token == nullptr) continue;
    const bool bytes = settings_.unit == BpeUnit::byte;
    if (auto word = bytes ? bytes_of_byte_level(*token) : std::optional(*token)) {
      whole_words_.emplace(std::move(*word), id);
    }
  }
}

void Bpe::collect_joints(const Vocabulary& vocabulary, const std::vector<Merge>& merges) {
  for (const Merge& merge : merges) {
    joints_.insert(joint(last_character(*vocabulary.token(merge.left)).code,
                         first_character(*vocabulary.token(merge.right)).code));
  }
}

std::int32_t Bpe::id_of(char32_t unit) const {
  if (unit < direct_units) return direct_id_of_[unit];
  const auto found = id_of_.find(unit);
  return found == id_of_.end() ? -1 : found->second;
}

bool Bpe::stay_apart(char32_t left, char32_t right) const {
  // A character without a token is replaced by tokens that have other characters.
  return settings_.unit == BpeUnit::character && !settings_.ignore_merges && id_of(left) >= 0 &&
         id_of(right) >= 0 && !joints_.contains(joint(left, right));
}

void Bpe::encode(std::string_view word, ModelMemory& memory, std::vector<std::int32_t>& ids) const {
  if (settings_.ignore_merges) {
    const auto whole = whole_words_.find(word);
    if (whole != whole_words_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  std::vector<std::int32_t>& symbols = memory.merger.symbols();
  symbols.clear();
  add_symbols(word, symbols);
  memory.merger.merge(merges_);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void Bpe::add_symbols(std::string_view word, std::vector<std::int32_t>& symbols) const {
  bool unk_pending = false;
  const auto add = [&](char32_t unit) {
    const std::int32_t id = id_of(unit);
    if (id < 0) return add_unknown(unit, unk_pending, symbols);
    if (unk_pending) symbols.push_back(*settings_.unk);
    unk_pending = false;
    symbols.push_back(id);
  };
  if (settings_.unit == BpeUnit::byte) {
    for (const char byte : word) add(static_cast<unsigned char>(byte));
  } else {
    while (!word.empty()) {
      const Character character = first_character(word);
      add(character.code);
      word.remove_prefix(character.size);
    }
  }
  if (unk_pending) symbols.push_back(*settings_.unk);
}

void Bpe::add_unknown(char32_t unit, bool& unk_pending, std::vector<std::int32_t>& symbols) const {
  if (settings_.byte_fallback) {
    const bool byte = settings_.unit == BpeUnit::byte;
    std::string text;
    append_utf8(text, byte ? byte_level_character(static_cast<std::uint8_t>(unit)) : unit);
    if (byte_tokens_.append(text, symbols)) return;
  }
  if (!settings_.unk) return;
  if (unk_pending && !settings_.fuse_unk) symbols.push_back(*settings_.unk);
  unk_pending = true;
}

}  // namespace dstrain::tokenizer
