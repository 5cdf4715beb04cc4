#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>

#include <fmt/format.h>

#include "tests/tidy/rules.h"

namespace dstrain::tidy {
namespace {

namespace fs = std::filesystem;

/// Whether `text` holds `name` with nothing of a longer file name around it.
bool names(std::string_view text, std::string_view name) {
  const auto part_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.';
  };
  for (std::size_t at = text.find(name); at != std::string_view::npos;
       at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !part_of_name(text[at - 1])) &&
        (end == text.size() || !part_of_name(text[end]))) {
      return true;
    }
  }
  return false;
}

/// Calls `visit(match, line)` for every match of `pattern`.
template <class Visit>
void for_each_match(const std::string& text, const std::regex& pattern, Visit&& visit) {
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    visit(*match, line_of(text, static_cast<std::size_t>(match->position())));
  }
}

/// A Markdown page without its fenced code.
std::string without_code_blocks(const std::string& text) {
  static const std::regex fence("```[^`]*```");
  std::string out = text;
  for (std::smatch match; std::regex_search(out, match, fence);) {
    const std::string block = match.str();
    std::string newlines(static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n')),
                         '\n');
    out = match.prefix().str() + newlines + match.suffix().str();
  }
  return out;
}

}  // namespace

Problems check_built(const SourceFile& file, const std::vector<SourceFile>& tree) {
  if (!file.ends_with(".cpp") && !file.ends_with(".cu")) return {};
  for (const SourceFile& list : tree) {
    const fs::path folder = fs::path(list.path).parent_path();
    if (!list.is_cmake_list() || !(folder.empty() || file.in(folder.generic_string()))) continue;
    const fs::path relative = fs::path(file.path).lexically_relative(folder.empty() ? "." : folder);
    if (names(list.text, relative.generic_string())) return {};
  }
  return {fmt::format("{}:1: no CMakeLists.txt builds this file", file.path)};
}

Problems check_test_names(const SourceFile& file) {
  static const std::regex test_case(R"re(\bTEST_CASE\(\s*"((?:[^"\\]|\\.)*)")re");
  Problems problems;
  if (!file.in("tests") || !file.ends_with("_test.cpp")) return problems;
  for_each_match(file.code, test_case, [&](const std::smatch& match, int line) {
    if (match[1].str().find_first_of(",[]\"\\") != std::string::npos) {
      problems.push_back(fmt::format("{}:{}: a test name has no comma, bracket or quote: {}",
                                     file.path, line, match[1].str()));
    }
  });
  return problems;
}

Problems check_early_returns(const SourceFile& file) {
  static const std::regex lambda_begins(
      R"re(\](\([^{}]*\))?( mutable| noexcept| -> [^{}]+)* \{$)re");
  Problems problems;
  if (file.in("tests/tidy") || !file.ends_with("_test.cpp")) return problems;
  bool in_test_case = false;
  std::size_t lambda_indent = std::string::npos;
  std::istringstream lines(file.code);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string::npos) continue;
    if (line.find("TEST_CASE") < line.find('(')) in_test_case = true;
    if (line.starts_with('}')) in_test_case = false;
    if (lambda_indent != std::string::npos && indent <= lambda_indent) {
      lambda_indent = std::string::npos;
    }
    if (in_test_case && lambda_indent == std::string::npos &&
        line.find("return;") != std::string::npos) {
      problems.push_back(fmt::format("{}:{}: a test case that cannot run is skipped, not left",
                                     file.path, number));
    }
    if (lambda_indent == std::string::npos && std::regex_search(line, lambda_begins)) {
      lambda_indent = indent;
    }
  }
  return problems;
}

Problems check_test_labels(const SourceFile& file) {
  constexpr std::array<std::string_view, 11> known{
      "unit", "comm", "conformance", "fault", "e2e", "gpu", "mpi", "net", "slow", "bench", "tidy"};
  static const std::regex test_binary(R"re(\ndstrain_test\((\w+)([^)]*)\))re");
  static const std::regex label(R"re(\bLABEL\s+"?(\w+))re");
  Problems problems;
  if (!file.in("tests") || !file.is_cmake_list()) return problems;
  for_each_match("\n" + file.text, test_binary, [&](const std::smatch& match, int line) {
    const std::string arguments = match[2].str();
    std::smatch found;
    if (!std::regex_search(arguments, found, label) ||
        std::find(known.begin(), known.end(), found[1].str()) == known.end()) {
      problems.push_back(
          fmt::format("{}:{}: {} has no known LABEL", file.path, line, match[1].str()));
    }
  });
  return problems;
}

Problems check_links(const SourceFile& file,
                     const std::function<bool(const std::string&)>& exists) {
  static const std::regex link(R"re(\]\(([^)\s#]+)(#[^)\s]*)?\))re");
  Problems problems;
  if (!file.ends_with(".md")) return problems;
  const std::string text = without_code_blocks(file.text);
  for_each_match(text, link, [&](const std::smatch& match, int line) {
    const std::string target = match[1].str();
    if (target.find(':') != std::string::npos) return;  // another site
    const fs::path path = (fs::path(file.path).parent_path() / target).lexically_normal();
    if (!exists(path.generic_string())) {
      problems.push_back(fmt::format("{}:{}: the link {} leads nowhere", file.path, line, target));
    }
  });
  return problems;
}

}  // namespace dstrain::tidy
