#include "runtime/tokenizer/added_tokens.h"

#include <algorithm>

#include "runtime/base/utf8.h"
#include "runtime/tokenizer/unicode.h"

namespace dstrain::tokenizer {
namespace {

bool stands_alone(std::string_view text, const Span& span) {
  const std::string_view before = text.substr(0, span.begin);
  const std::string_view after = text.substr(span.end);
  return (before.empty() || !is_word(last_character(before).code)) &&
         (after.empty() || !is_word(first_character(after).code));
}

std::size_t blanks_at_end(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty() && is_whitespace(last_character(rest).code)) {
    rest.remove_suffix(last_character(rest).size);
  }
  return text.size() - rest.size();
}

std::size_t blanks_at_begin(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty() && is_whitespace(first_character(rest).code)) {
    rest.remove_prefix(first_character(rest).size);
  }
  return text.size() - rest.size();
}

}  // namespace

AddedTokenFinder::AddedTokenFinder() : nodes_(1) {}

bool AddedTokenFinder::add(std::string_view text, const AddedToken& token) {
  std::size_t node = 0;
  for (const char letter : text) {
    const auto [child, is_new] = nodes_[node].children.emplace(letter, nodes_.size());
    node = child->second;
    if (is_new) nodes_.emplace_back();
  }
  if (nodes_[node].token >= 0) return false;
  nodes_[node].token = static_cast<std::ptrdiff_t>(tokens_.size());
  tokens_.push_back(token);
  begins_token_[static_cast<unsigned char>(text.front())] = true;
  note_borders(text, token);
  return true;
}

void AddedTokenFinder::note_borders(std::string_view text, const AddedToken& token) {
  strips_ |= token.lstrip || token.rstrip;
  Character left = first_character(text);
  if (token.single_word) firsts_of_single_words_.insert(left.code);
  for (text.remove_prefix(left.size); !text.empty(); text.remove_prefix(left.size)) {
    const Character right = first_character(text);
    neighbours_.emplace(left.code, right.code);
    left = right;
  }
  lasts_.insert(left.code);
}

bool AddedTokenFinder::allows_cut(const Border& border) const {
  if (tokens_.empty()) return true;
  if (!border.left || lasts_.contains(*border.left)) return false;
  if (neighbours_.contains({*border.left, border.right})) return false;
  if (strips_ && is_whitespace(*border.left)) return false;
  return !firsts_of_single_words_.contains(border.right) || !is_word(*border.left);
}

AddedTokenFinder::Found AddedTokenFinder::find(std::string_view text, std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (!begins_token_[static_cast<unsigned char>(text[begin])]) continue;
    Found found;
    std::size_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto child = nodes_[node].children.find(text[at]);
      if (child == nodes_[node].children.end()) break;
      node = child->second;
      if (nodes_[node].token < 0) continue;
      found = {.span = {begin, at + 1},
               .token = &tokens_[static_cast<std::size_t>(nodes_[node].token)]};
    }
    if (found.token != nullptr) return found;
  }
  return {};
}

void AddedTokenFinder::split(std::string_view text, std::vector<AddedPart>& parts) const {
  std::size_t end = 0;  // of the last part
  std::size_t from = 0;
  while (!tokens_.empty()) {
    const Found found = find(text, from);
    if (found.token == nullptr) break;
    from = found.span.end;
    Span span = found.span;
    if (found.token->single_word && !stands_alone(text, span)) continue;
    if (found.token->lstrip) {
      const std::size_t text_begin = std::min(end, span.begin);
      span.begin -= blanks_at_end(Span{text_begin, span.begin}.of(text));
      span.begin = std::max(end, span.begin);
    }
    if (found.token->rstrip) span.end += blanks_at_begin(text.substr(span.end));
    if (end < span.begin) parts.push_back({.span = {end, span.begin}, .id = -1});
    parts.push_back({.span = span, .id = found.token->id});
    end = span.end;
  }
  if (end < text.size()) parts.push_back({.span = {end, text.size()}, .id = -1});
}

}  // namespace dstrain::tokenizer
