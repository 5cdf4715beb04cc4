#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "tests/tidy/rules.h"

namespace dstrain::tidy {
namespace {

constexpr std::size_t columns_max = 100;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Calls `visit(line, number)` for every line, without its newline.
template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Characters, not bytes, of UTF-8.
std::size_t columns(std::string_view line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

enum class Where { libraries, product, tests, everywhere, headers };

bool applies(Where where, const SourceFile& file) {
  const bool library =
      file.in("runtime") || file.in("zero") || file.in("offload") || file.in("launcher");
  switch (where) {
    case Where::libraries:
      return library;
    case Where::product:
      return library || file.in("cmd");
    case Where::tests:
      return file.in("tests") && !file.in("tests/tidy");
    case Where::headers:
      return file.is_header();
    case Where::everywhere:
      return !file.in("tests/tidy");
  }
  return false;
}

struct Banned {
  std::string_view word;
  Where where;
  std::string_view reason;
};

constexpr std::array<Banned, 20> banned_words{{
    {"exit(", Where::libraries, "a library throws Error"},
    {"quick_exit(", Where::libraries, "a library throws Error"},
    {"std::abort(", Where::libraries, "a library throws Error"},
    {"std::cout", Where::libraries, "a library does not print"},
    {"std::cerr", Where::libraries, "a library does not print"},
    {"printf(", Where::libraries, "a library does not print"},
    {"fprintf(", Where::libraries, "a library does not print"},
    {"puts(", Where::libraries, "a library does not print"},
    {"system(", Where::product, "no shell: start programs with their arguments"},
    {"popen(", Where::product, "no shell: start programs with their arguments"},
    {"\"/bin/sh\"", Where::product, "no shell: start programs with their arguments"},
    {"\"/bin/bash\"", Where::product, "no shell: start programs with their arguments"},
    {"sleep_for", Where::tests, "wait for what happens, not for time"},
    {"sleep_until", Where::tests, "wait for what happens, not for time"},
    {"usleep(", Where::tests, "wait for what happens, not for time"},
    {"sleep(", Where::tests, "wait for what happens, not for time"},
    {"poll(nullptr", Where::everywhere, "wait for what happens, not for time"},
    {"WARN(", Where::tests, "a test that cannot run here is skipped: tests/support/skip.h"},
    {"cudaDeviceSynchronize", Where::everywhere, "synchronise the stream"},
    {"using namespace", Where::headers, "a header opens no namespace for its readers"},
}};

void find_banned(const Banned& banned, const SourceFile& file, Problems& problems) {
  for (std::size_t at = file.code.find(banned.word); at != std::string::npos;
       at = file.code.find(banned.word, at + 1)) {
    const bool inside_a_word = at > 0 && is_word(banned.word[0]) && is_word(file.code[at - 1]);
    if (inside_a_word) continue;
    problems.push_back(fmt::format("{}:{}: {}: {}", file.path, line_of(file.code, at), banned.word,
                                   banned.reason));
  }
}

}  // namespace

Problems check_columns(const SourceFile& file) {
  Problems problems;
  if (!file.is_cpp() && !file.is_cmake_list() && !file.ends_with(".sh")) return problems;
  for_each_line(file.text, [&](std::string_view line, int number) {
    if (columns(line) > columns_max) {
      problems.push_back(fmt::format("{}:{}: {} columns", file.path, number, columns(line)));
    }
  });
  return problems;
}

Problems check_whitespace(const SourceFile& file) {
  Problems problems;
  const auto complain = [&](int line, std::string_view what) {
    problems.push_back(fmt::format("{}:{}: {}", file.path, line, what));
  };
  for_each_line(file.text, [&](std::string_view line, int number) {
    if (line.find('\t') != std::string_view::npos) complain(number, "tab");
    if (line.find('\r') != std::string_view::npos) complain(number, "carriage return");
    if (line.ends_with(' ')) complain(number, "blank at the end of the line");
  });
  if (!file.text.empty() && file.text.back() != '\n') {
    complain(line_of(file.text, file.text.size()), "no newline at the end");
  }
  return problems;
}

Problems check_banned_words(const SourceFile& file) {
  Problems problems;
  for (const Banned& banned : banned_words) {
    if (applies(banned.where, file)) find_banned(banned, file, problems);
  }
  return problems;
}

}  // namespace dstrain::tidy
