#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tokenizer/border.h"
#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {

/// A token that is extracted from a text before the model sees the rest.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  ///< only if no letter is next to it
  bool lstrip = false;       ///< also removes the white space before it
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< searched in the normalized text, otherwise before normalization
  bool special = false;      ///< omitted by decoding on request
};

/// A part of a text: an added token, or the text between two.
struct AddedPart {
  Span span;
  std::int32_t id = -1;  ///< of the token; -1: plain text
};

/// Finds added tokens in a text, from left to right; the longest one wins. Immutable.
class AddedTokenFinder {
 public:
  AddedTokenFinder();
  /// Registers the non-empty `text` for this token. Returns false if another token has that text.
  [[nodiscard]] bool add(std::string_view text, const AddedToken& token);

  /// Appends the parts of `text`, which must be valid UTF-8. No part is empty.
  void split(std::string_view text, std::vector<AddedPart>& parts) const;

  /// See Border. Not directly after a token either, because the text between two tokens starts
  /// anew.
  [[nodiscard]] bool allows_cut(const Border& border) const;

 private:
  struct Node {
    std::map<char, std::size_t> children;
    std::ptrdiff_t token = -1;
  };
  struct Found {
    Span span;
    const AddedToken* token = nullptr;
  };

  [[nodiscard]] Found find(std::string_view text, std::size_t from) const;

  void note_borders(std::string_view text, const AddedToken& token);

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::array<bool, 256> begins_token_{};
  std::set<std::pair<char32_t, char32_t>> neighbours_;  ///< adjacent characters within tokens
  std::set<char32_t> lasts_;
  std::set<char32_t> firsts_of_single_words_;
  bool strips_ = false;  ///< some token removes white space around it
};

}  // namespace dstrain::tokenizer
