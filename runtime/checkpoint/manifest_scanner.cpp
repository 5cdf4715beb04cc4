#include "runtime/checkpoint/manifest_scanner.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace dstrain::checkpoint {
namespace {

constexpr std::size_t shown = 24;  ///< characters of the text in a message

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

}  // namespace

bool is_plain_word(std::string_view text) {
  return std::ranges::all_of(text, is_plain);
}

void ManifestScanner::expect(std::string_view literal) {
  if (!pass(literal)) unexpected(literal);
}

bool ManifestScanner::pass(std::string_view literal) {
  if (!text_.substr(at_).starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

std::int64_t ManifestScanner::number() {
  const std::string_view rest = text_.substr(at_);
  const auto digits =
      static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin());
  if (digits == 0 || (digits > 1 && rest.front() == '0')) unexpected("a number without sign");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, value);
  if (error != std::errc() || value > number_max) unexpected("a number of at most 2^53");
  at_ += digits;
  return value;
}

std::string_view ManifestScanner::word() {
  if (!pass("\"")) unexpected("a string");
  const std::string_view rest = text_.substr(at_);
  const auto size =
      static_cast<std::size_t>(std::ranges::find_if_not(rest, is_plain) - rest.begin());
  at_ += size;
  if (!pass("\"")) unexpected("printable ASCII without escapes, then \"");
  return rest.substr(0, size);
}

void ManifestScanner::expect_end() {
  if (at_ != text_.size()) unexpected("the end");
}

void ManifestScanner::refuse(const std::string& problem) const {
  fail(ErrorCode::input, "{}: byte {}: {}", file_, at_, problem);
}

void ManifestScanner::unexpected(std::string_view expected) const {
  std::string found(text_.substr(at_, shown));
  std::string wanted(expected);
  const auto mark = [](char c) {
    return c < ' ' || c > '~';
  };
  std::ranges::replace_if(found, mark, ' ');
  std::ranges::replace_if(wanted, mark, ' ');
  refuse(fmt::format("expected {}, found {}", wanted, found.empty() ? "the end" : found));
}

}  // namespace dstrain::checkpoint
