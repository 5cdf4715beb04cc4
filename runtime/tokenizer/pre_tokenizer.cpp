#include "runtime/tokenizer/pre_tokenizer.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "runtime/base/utf8.h"
#include "runtime/tokenizer/split.h"
#include "runtime/tokenizer/unicode.h"

namespace dstrain::tokenizer {
namespace {

/// github.com/openai/gpt-2, src/encoder.py.
constexpr std::string_view gpt2_regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Replaces each word by the words from `cut(word, words)`.
template <class Cut>
void cut_each(Words& words, CutMemory& memory, Cut&& cut) {
  memory.spans.clear();
  for (const Span& word : words.spans) cut(word, memory.spans);
  std::erase_if(memory.spans, [](const Span& span) { return span.size() == 0; });
  std::swap(words.spans, memory.spans);
}

/// Split: cuts at the matches of a pattern, or at the text between them.
class PatternSplit final : public PreTokenizer {
 public:
  PatternSplit(std::unique_ptr<Pattern> pattern, SplitBehavior behavior, bool inverted)
      : pattern_(std::move(pattern)), behavior_(behavior), inverted_(inverted) {}

  void apply(Words& words, CutMemory& memory) const override {
    cut_each(words, memory, [&](const Span& word, std::vector<Span>& result) {
      const std::string_view text = word.of(words.passage.text);
      Splitter splitter(behavior_, result);
      std::size_t end = 0;
      const auto add = [&](std::size_t begin, std::size_t until, bool match) {
        splitter.add(
            {.span = {word.begin + begin, word.begin + until}, .delimiter = match != inverted_});
      };
      for_each_match(*pattern_, text, memory.match, [&](Span match) {
        if (end != match.begin) add(end, match.begin, false);
        add(match.begin, match.end, true);
        end = match.end;
      });
      if (end != text.size()) add(end, text.size(), false);
      splitter.finish();
    });
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    using enum MatchBorder::Chance;
    if (!border.left) return false;
    const auto matches = pattern_->border(*border.left, border.right);
    if (!matches || matches->spanned) return false;
    if (matches->ends == never && matches->begins == never) return true;  // between two matches
    border.ends_word = matches->ends == certain || matches->begins == certain;
    return behavior_ == SplitBehavior::isolated || behavior_ == SplitBehavior::removed;
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  SplitBehavior behavior_;
  bool inverted_;
};

/// Cuts at every character of a kind.
class CharacterSplit final : public PreTokenizer {
 public:
  using Kind = bool (*)(char32_t);
  CharacterSplit(Kind kind, SplitBehavior behavior) : kind_(kind), behavior_(behavior) {}

  void apply(Words& words, CutMemory& memory) const override {
    cut_each(words, memory, [&](const Span& word, std::vector<Span>& result) {
      Splitter splitter(behavior_, result);
      std::size_t begin = word.begin;
      std::size_t at = word.begin;
      while (at < word.end) {
        const Character character = first_character(Span{at, word.end}.of(words.passage.text));
        if (kind_(character.code)) {
          if (begin < at) splitter.add({.span = {begin, at}, .delimiter = false});
          splitter.add({.span = {at, at + character.size}, .delimiter = true});
          begin = at + character.size;
        }
        at += character.size;
      }
      if (begin < at) splitter.add({.span = {begin, at}, .delimiter = false});
      splitter.finish();
    });
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    if (!border.left) return false;
    const bool left = kind_(*border.left);
    const bool right = kind_(border.right);
    if (!left && !right) return true;
    if (behavior_ == SplitBehavior::contiguous) {
      border.ends_word = left != right;
      return true;
    }
    border.ends_word = true;
    return behavior_ == SplitBehavior::isolated || behavior_ == SplitBehavior::removed;
  }

 private:
  Kind kind_;
  SplitBehavior behavior_;
};

/// Whitespace: cuts into runs of \w and runs of characters that are neither \w nor white space;
/// \w+|[^\w\s]+.
class WordRuns final : public PreTokenizer {
 public:
  void apply(Words& words, CutMemory& memory) const override {
    cut_each(words, memory, [&](const Span& word, std::vector<Span>& result) {
      int before = blank;
      for (std::size_t at = word.begin; at < word.end;) {
        const Character character = first_character(Span{at, word.end}.of(words.passage.text));
        const int kind = kind_of(character.code);
        if (kind != blank && kind != before) result.push_back({at, at});
        at += character.size;
        if (kind != blank) result.back().end = at;
        before = kind;
      }
    });
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    if (!border.left) return false;
    const int kind = kind_of(border.right);
    border.ends_word = kind == blank || kind != kind_of(*border.left);
    return true;
  }

 private:
  static constexpr int blank = 0;
  static constexpr int letters = 1;
  static constexpr int others = 2;

  static int kind_of(char32_t code) {
    return is_word(code) ? letters : is_whitespace(code) ? blank : others;
  }
};

/// Part of ByteLevel: adds a space before each word without one.
class SpaceBefore final : public PreTokenizer {
 public:
  void apply(Words& words, CutMemory& memory) const override {
    const std::string& text = words.passage.text;
    memory.text.clear();
    for (Span& word : words.spans) {
      const std::size_t begin = memory.text.size();
      if (text[word.begin] != ' ') memory.text += ' ';
      memory.text += word.of(text);
      word = {begin, memory.text.size()};
    }
    std::swap(words.passage.text, memory.text);
  }

  [[nodiscard]] bool allows_cut(Border& border) const override { return border.right == U' '; }
};

enum class PrependScheme { never, first, always };

/// Metaspace: replaces spaces by a sign that begins a word.
class Metaspace final : public PreTokenizer {
 public:
  struct Settings {
    char32_t replacement = 0;
    PrependScheme prepend = PrependScheme::always;
    bool split = true;
  };
  explicit Metaspace(const Settings& settings) : settings_(settings) {
    append_utf8(sign_, settings.replacement);
  }

  void apply(Words& words, CutMemory& memory) const override {
    memory.text.clear();
    cut_each(words, memory, [&](const Span& word, std::vector<Span>& result) {
      const std::size_t begin = memory.text.size();
      add_text(word.of(words.passage.text), word.begin == 0 && words.passage.begins_input,
               memory.text);
      add_words({begin, memory.text.size()}, memory.text, result);
    });
    std::swap(words.passage.text, memory.text);
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    const auto rewritten = [&](char32_t code) {
      return code == U' ' ? settings_.replacement : code;
    };
    border.right = rewritten(border.right);
    if (border.right == settings_.replacement) {
      border.ends_word = settings_.split;
    } else if (settings_.prepend == PrependScheme::always || !border.left) {
      return false;
    }
    if (border.left) border.left = rewritten(*border.left);
    return true;
  }

 private:
  void add_text(std::string_view word, bool begins_input, std::string& text) const {
    const bool prepends = settings_.prepend == PrependScheme::always ||
                          (settings_.prepend == PrependScheme::first && begins_input);
    if (prepends && word.front() != ' ' && !word.starts_with(sign_)) text += sign_;
    while (!word.empty()) {
      const std::size_t space = std::min(word.find(' '), word.size());
      text += word.substr(0, space);
      if (space == word.size()) return;
      text += sign_;
      word.remove_prefix(space + 1);
    }
  }

  /// A word begins at each sign.
  void add_words(const Span& all, std::string_view text, std::vector<Span>& result) const {
    std::size_t begin = all.begin;
    while (settings_.split) {
      const std::size_t sign = text.find(sign_, begin + 1);
      if (sign == std::string_view::npos) break;
      result.push_back({begin, sign});
      begin = sign;
    }
    result.push_back({begin, all.end});
  }

  Settings settings_;
  std::string sign_;
};

class JointCuts final : public PreTokenizer {
 public:
  explicit JointCuts(const Bpe& model) : model_(model) {
    for (std::size_t left = 0; left < apart_.size(); ++left) {
      for (std::size_t right = 0; right < apart_.size(); ++right) {
        apart_[left][right] =
            model.stay_apart(static_cast<char32_t>(left), static_cast<char32_t>(right));
      }
    }
  }

  void apply(Words& words, CutMemory& memory) const override {
    const std::string_view text = words.passage.text;
    cut_each(words, memory, [&](const Span& word, std::vector<Span>& result) {
      std::size_t begin = word.begin;
      for (std::size_t at = begin + 1; at < word.end; ++at) {
        if (!is_apart(text, at)) continue;
        result.push_back({begin, at});
        begin = at;
      }
      result.push_back({begin, word.end});
    });
  }

  [[nodiscard]] bool allows_cut(Border& border) const override {
    border.ends_word = border.left && model_.stay_apart(*border.left, border.right);
    return true;
  }

 private:
  static constexpr std::string_view sign = "\xE2\x96\x81";
  static constexpr char32_t sign_code = 0x2581;  ///< SentencePiece's sign before every word

  /// Only between two ASCII characters or before the sign: other pairs are not worth a lookup.
  [[nodiscard]] bool is_apart(std::string_view text, std::size_t at) const {
    const auto left = static_cast<unsigned char>(text[at - 1]);
    const auto right = static_cast<unsigned char>(text[at]);
    if ((left | right) < 0x80) return apart_[left][right];
    return text.substr(at, sign.size()) == sign &&
           model_.stay_apart(last_character(text.substr(0, at)).code, sign_code);
  }

  const Bpe& model_;
  std::array<std::array<bool, 128>, 128> apart_{};  ///< for pairs of ASCII characters
};

std::unique_ptr<PreTokenizer> read_split(const JsonField& field) {
  const JsonField name = field.member("behavior");
  const auto behavior = split_behavior(name.text());
  if (!behavior) name.refuse(fmt::format("is '{}', which is not supported", name.text()));
  return std::make_unique<PatternSplit>(read_pattern(field.member("pattern")), *behavior,
                                        field.member("invert").flag());
}

PrependScheme read_prepend_scheme(const JsonField& field) {
  const std::string name = field.text_or("prepend_scheme", "always");
  // The older way to write it.
  if (!field.flag_or("add_prefix_space", true)) {
    if (field.find("prepend_scheme") && name != "never") {
      field.refuse("has an add_prefix_space that contradicts its prepend_scheme");
    }
    return PrependScheme::never;
  }
  if (name == "never") return PrependScheme::never;
  if (name == "first") return PrependScheme::first;
  if (name == "always") return PrependScheme::always;
  field.refuse(fmt::format("has the prepend_scheme '{}', which is not supported", name));
}

std::unique_ptr<PreTokenizer> read_metaspace(const JsonField& field, bool cut_before) {
  const PrependScheme prepend = read_prepend_scheme(field);
  if (prepend == PrependScheme::first && cut_before) {
    field.refuse("has the prepend_scheme 'first' after another pre-tokenizer: not supported");
  }
  return std::make_unique<Metaspace>(
      Metaspace::Settings{.replacement = field.member("replacement").character(),
                          .prepend = prepend,
                          .split = field.flag_or("split", true)});
}

void add_gpt2_split(PreTokenizers& result) {
  result.steps.push_back(std::make_unique<PatternSplit>(make_regex(gpt2_regex, "GPT-2"),
                                                        SplitBehavior::isolated, false));
}

void add_byte_level(const JsonField& field, PreTokenizers& result) {
  if (field.member("add_prefix_space").flag()) {
    result.steps.push_back(std::make_unique<SpaceBefore>());
  }
  if (field.flag_or("use_regex", true)) add_gpt2_split(result);
  result.unit = BpeUnit::byte;
}

std::unique_ptr<PreTokenizer> read_cutter(const std::string& type, const JsonField& field) {
  if (type == "Split") return read_split(field);
  if (type == "Whitespace") return std::make_unique<WordRuns>();
  if (type == "WhitespaceSplit") {
    return std::make_unique<CharacterSplit>(is_whitespace, SplitBehavior::removed);
  }
  if (type == "Digits") {
    const bool each = field.member("individual_digits").flag();
    return std::make_unique<CharacterSplit>(
        is_numeric, each ? SplitBehavior::isolated : SplitBehavior::contiguous);
  }
  if (type == "Punctuation") {
    const auto behavior = split_behavior(field.text_or("behavior", "Isolated"));
    if (!behavior) field.refuse("has a behavior that is not supported");
    return std::make_unique<CharacterSplit>(is_punctuation, *behavior);
  }
  field.refuse(fmt::format("has the type '{}', which is not supported", type));
}

void read_into(const JsonField& field, PreTokenizers& result) {
  const std::string type = field.member("type").text();
  if (type == "Sequence") {
    field.member("pretokenizers").for_each([&](const JsonField& each) { read_into(each, result); });
    return;
  }
  if (result.unit == BpeUnit::byte) field.refuse("follows ByteLevel, which must be the last");
  if (type == "ByteLevel") {
    add_byte_level(field, result);
  } else if (type == "Metaspace") {
    result.steps.push_back(read_metaspace(field, !result.steps.empty()));
  } else {
    result.steps.push_back(read_cutter(type, field));
  }
}

}  // namespace

PreTokenizers read_pre_tokenizers(const JsonField& field) {
  PreTokenizers result;
  read_into(field, result);
  return result;
}

PreTokenizers gpt2_pre_tokenizers() {
  PreTokenizers result{.unit = BpeUnit::byte};
  add_gpt2_split(result);
  return result;
}

std::unique_ptr<PreTokenizer> make_joint_cuts(const Bpe& model) {
  return std::make_unique<JointCuts>(model);
}

}  // namespace dstrain::tokenizer
