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

/// A token that is looked for in texts before the model gets them.
struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool single_word = false;  ///< only where no letter stands beside it
  bool lstrip = false;       ///< takes the white space before it along
  bool rstrip = false;       ///< and after it
  bool normalized = false;   ///< looked for in normalized texts, else before that
  bool special = false;      ///< left out by decoding, when asked to
};

/// A part of a text: an added token, or what lies between two.
struct AddedPart {
  Span span;
  std::int32_t id = -1;  ///< of the token; -1: text
};

/// Finds added tokens in texts: from the left, the longest one first. Immutable.
class AddedTokenFinder {
 public:
  AddedTokenFinder();
  /// Looks for `text`, which is not empty, as this token; false when another one has it.
  [[nodiscard]] bool add(std::string_view text, const AddedToken& token);

  /// Appends the parts of `text`, which is valid UTF-8; none of it empty.
  void split(std::string_view text, std::vector<AddedPart>& parts) const;

  /// See Border. Not behind a token either: what lies between two tokens begins anew there.
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
  std::set<std::pair<char32_t, char32_t>> neighbours_;  ///< characters within tokens
  std::set<char32_t> lasts_;
  std::set<char32_t> firsts_of_single_words_;
  bool strips_ = false;  ///< some token takes white space along
};

}  // namespace dstrain::tokenizer
