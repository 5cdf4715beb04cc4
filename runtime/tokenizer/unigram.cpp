#include "runtime/tokenizer/unigram.h"

#include <algorithm>

#include "runtime/base/utf8.h"

namespace dstrain::tokenizer {

Unigram::Unigram(const Vocabulary& vocabulary,
                 std::vector<double> scores,
                 const UnigramSettings& settings)
    : vocabulary_(vocabulary),
      scores_(std::move(scores)),
      settings_(settings),
      byte_tokens_(vocabulary) {
  constexpr double unk_penalty = 10;
  unk_score_ = *std::min_element(scores_.begin(), scores_.end()) - unk_penalty;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.token(id)->empty()) trie_.insert(*vocabulary.token(id), id);
  }
}

void Unigram::find_path(std::string_view word, std::vector<PathNode>& path) const {
  path.assign(word.size() + 1, PathNode{});
  const auto offer = [&](std::size_t begin, std::size_t size, double score, std::int32_t id) {
    PathNode& end = path[begin + size];
    const double sum = score + path[begin].score;
    if (end.begin >= 0 && sum <= end.score) return;
    end = {.score = sum, .id = id, .begin = static_cast<std::int32_t>(begin)};
  };
  for (std::size_t begin = 0; begin < word.size();) {
    const std::string_view rest = word.substr(begin);
    const std::size_t character = first_character(rest).size;
    bool known = false;
    trie_.for_each_prefix(rest, [&](std::size_t size, std::int32_t id) {
      offer(begin, size, scores_[static_cast<std::size_t>(id)], id);
      known |= size == character;
    });
    if (!known) offer(begin, character, unk_score_, settings_.unk);
    begin += character;
  }
}

void Unigram::encode(std::string_view word,
                     ModelMemory& memory,
                     std::vector<std::int32_t>& ids) const {
  find_path(word, memory.path);
  // The best path is known from the end backwards: reverse it, to follow it from the beginning.
  std::size_t end = word.size();
  std::size_t next = end;
  std::vector<PathNode>& path = memory.path;
  while (end > 0) {
    const auto begin = static_cast<std::size_t>(path[end].begin);
    path[end].begin = static_cast<std::int32_t>(next);
    next = end;
    end = begin;
  }
  std::size_t unknown = 0;  // unknown bytes directly before `begin`
  for (std::size_t begin = 0; begin < word.size();) {
    const std::size_t until = next;
    next = static_cast<std::size_t>(path[until].begin);
    if (path[until].id == settings_.unk) {
      unknown += until - begin;
    } else {
      if (unknown > 0) add_unknown(word.substr(begin - unknown, unknown), ids);
      unknown = 0;
      ids.push_back(path[until].id);
    }
    begin = until;
  }
  if (unknown > 0) add_unknown(word.substr(word.size() - unknown), ids);
}

void Unigram::add_unknown(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (const auto id = vocabulary_.id(text)) {
    ids.push_back(*id);
  } else if (!settings_.byte_fallback || !byte_tokens_.append(text, ids)) {
    ids.push_back(settings_.unk);
  }
}

}  // namespace dstrain::tokenizer
