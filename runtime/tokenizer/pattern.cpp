#include "runtime/tokenizer/pattern.h"

#include <array>
#include <utility>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8  // NOLINT(readability-identifier-naming): PCRE2 asks for it
#include <pcre2.h>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/regex_shape.h"
#include "runtime/tokenizer/regex_syntax.h"

namespace dstrain::tokenizer {
// Not in the unnamed namespace, because MatchMemory::Parts has external linkage and uses them.
struct PcreRelease {
  void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
  void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const noexcept {
    pcre2_match_context_free(context);
  }
  void operator()(pcre2_jit_stack* stack) const noexcept { pcre2_jit_stack_free(stack); }
};

template <class T>
using PcreHandle = std::unique_ptr<T, PcreRelease>;

namespace {

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::string message_of(int error) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(error, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

/// Searches for a literal text.
class Literal final : public Pattern {
 public:
  explicit Literal(std::string text) : text_(std::move(text)) {}

  std::optional<Span> find(std::string_view text,
                           std::size_t from,
                           MatchMemory& /*memory*/) const override {
    const std::size_t begin = text.find(text_, from);
    if (begin == std::string_view::npos) return std::nullopt;
    return Span{begin, begin + text_.size()};
  }

  [[nodiscard]] std::optional<MatchBorder> border(char32_t left, char32_t right) const override {
    std::string ends;
    append_utf8(ends, left);
    std::string begins;
    append_utf8(begins, right);
    using enum MatchBorder::Chance;
    return MatchBorder{.spanned = text_.find(ends + begins) != text_.npos,
                       .ends = !text_.ends_with(ends) ? never
                               : text_ == ends        ? certain
                                                      : possible,
                       .begins = !text_.starts_with(begins) ? never
                                 : text_ == begins          ? certain
                                                            : possible};
  }

 private:
  std::string text_;
};

}  // namespace

struct MatchMemory::Parts {
  static constexpr std::size_t stack_bytes_min = std::size_t{32} << 10;
  static constexpr std::size_t stack_bytes_max = std::size_t{4} << 20;

  PcreHandle<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
  PcreHandle<pcre2_match_context> context{pcre2_match_context_create(nullptr)};
  PcreHandle<pcre2_jit_stack> stack{
      pcre2_jit_stack_create(stack_bytes_min, stack_bytes_max, nullptr)};
};

MatchMemory::MatchMemory() : parts_(std::make_unique<Parts>()) {
  if (parts_->data == nullptr || parts_->context == nullptr) throw std::bad_alloc();
  // Without its own stack, compiled code uses 32 KiB of the thread's stack.
  if (parts_->stack != nullptr) {
    pcre2_jit_stack_assign(parts_->context.get(), nullptr, parts_->stack.get());
  }
}

MatchMemory::MatchMemory(MatchMemory&&) noexcept = default;
MatchMemory& MatchMemory::operator=(MatchMemory&&) noexcept = default;
MatchMemory::~MatchMemory() = default;

class Regex final : public Pattern {
 public:
  Regex(std::string_view pattern, std::string place) : place_(std::move(place)) {
    const std::string rewritten = pcre2_pattern(pattern, place_);
    code_ = compile(rewritten);
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // otherwise PCRE2 interprets it
    shape_ = regex_shape(rewritten);
    if (!shape_) return;
    for (const std::string& atom : shape_->atoms) atoms_.push_back(compile(atom));
  }

  std::optional<Span> find(std::string_view text,
                           std::size_t from,
                           MatchMemory& memory) const override {
    pcre2_match_data* const data = memory.parts_->data.get();
    const int found = pcre2_match(code_.get(), units(text), text.size(), from, PCRE2_NO_UTF_CHECK,
                                  data, memory.parts_->context.get());
    if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
    if (found < 0) {
      fail(ErrorCode::input, "{}: the regular expression fails on a text: {}", place_,
           message_of(found));
    }
    const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(data);
    return Span{bounds[0], bounds[1]};
  }

  [[nodiscard]] std::optional<MatchBorder> border(char32_t left, char32_t right) const override {
    if (!shape_) return std::nullopt;
    const RegexShape::Atoms ending = reading(left);
    const RegexShape::Atoms beginning = reading(right);
    using enum MatchBorder::Chance;
    const auto chance = [&](const auto& those, const auto& outermost) {
      return (those & shape_->alone).any() ? certain : (those & outermost).any() ? possible : never;
    };
    MatchBorder border{.ends = chance(ending, shape_->last),
                       .begins = chance(beginning, shape_->first)};
    for (std::size_t atom = 0; atom < atoms_.size(); ++atom) {
      border.spanned |= ending[atom] && (shape_->next[atom] & beginning).any();
    }
    return border;
  }

 private:
  [[nodiscard]] PcreHandle<pcre2_code> compile(const std::string& pattern) const {
    int error = 0;
    PCRE2_SIZE offset = 0;
    PcreHandle<pcre2_code> code(pcre2_compile(units(pattern), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                              &error, &offset, nullptr));
    if (code == nullptr) {
      fail(ErrorCode::input, "{}: the regular expression is wrong: {}", place_, message_of(error));
    }
    return code;
  }

  /// Returns the atoms that match a character.
  [[nodiscard]] RegexShape::Atoms reading(char32_t code) const {
    std::string character;
    append_utf8(character, code);
    const PcreHandle<pcre2_match_data> data(pcre2_match_data_create(1, nullptr));
    if (data == nullptr) throw std::bad_alloc();
    RegexShape::Atoms result;
    for (std::size_t atom = 0; atom < atoms_.size(); ++atom) {
      result[atom] = pcre2_match(atoms_[atom].get(), units(character), character.size(), 0,
                                 PCRE2_NO_UTF_CHECK, data.get(), nullptr) >= 0;
    }
    return result;
  }

  std::string place_;
  PcreHandle<pcre2_code> code_;
  std::optional<RegexShape> shape_;
  std::vector<PcreHandle<pcre2_code>> atoms_;  ///< of the shape
};

std::unique_ptr<Pattern> make_regex(std::string_view pattern, const std::string& place) {
  return std::make_unique<Regex>(pattern, place);
}

std::unique_ptr<Pattern> read_pattern(const JsonField& field) {
  if (const auto text = field.find("String")) {
    if (text->text().empty()) text->refuse("is empty");
    return std::make_unique<Literal>(text->text());
  }
  const JsonField regex = field.member("Regex");
  return make_regex(regex.text(), regex.place());
}

}  // namespace dstrain::tokenizer
