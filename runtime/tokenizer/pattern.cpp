#include "runtime/tokenizer/pattern.h"

#include <array>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8  // NOLINT(readability-identifier-naming): PCRE2 asks for it
#include <pcre2.h>

#include "runtime/base/error.h"
#include "runtime/tokenizer/regex_syntax.h"

namespace dstrain::tokenizer {
// Not in the unnamed namespace: MatchMemory::Parts, which is known outside, has them.
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

/// Finds a text as it is.
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
  // Without a stack of its own, machine code takes 32 KiB of the thread's.
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
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(units(rewritten), rewritten.size(), PCRE2_UTF | PCRE2_UCP, &error,
                              &offset, nullptr));
    if (code_ == nullptr) {
      fail(ErrorCode::input, "{}: the regular expression is wrong: {}", place_, message_of(error));
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);  // else PCRE2 interprets it
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

 private:
  std::string place_;
  PcreHandle<pcre2_code> code_;
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
