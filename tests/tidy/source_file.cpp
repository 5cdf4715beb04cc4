#include "tests/tidy/source_file.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <utility>

namespace dstrain::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 10> text_endings{".h",    ".cpp", ".cuh", ".cu",  ".txt",
                                                        ".json", ".md",  ".sh",  ".awk", ".py"};

bool is_text(const std::string& path) {
  return path == ".ci/run" || std::any_of(text_endings.begin(), text_endings.end(),
                                          [&](auto ending) { return path.ends_with(ending); });
}

bool is_skipped_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == "out" || name.starts_with("build") || (name.starts_with(".") && name != ".ci");
}

/// The end of the string or character literal that begins at `begin`.
std::size_t end_of_literal(std::string_view text, std::size_t begin) {
  if (text[begin] == '"' && begin > 0 && text[begin - 1] == 'R') {
    const std::size_t open = std::min(text.find('(', begin), text.size() - 1);
    std::string close = ")";
    close.append(text.substr(begin + 1, open - begin - 1)).append("\"");
    const std::size_t end = text.find(close, open);
    return end == std::string_view::npos ? text.size() : end + close.size();
  }
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != text[begin] && text[i] != '\n') {
    i += text[i] == '\\' ? std::size_t{2} : std::size_t{1};
  }
  return std::min(i + 1, text.size());
}

bool is_digit_separator(std::string_view text, std::size_t position) {
  return text[position] == '\'' && position > 0 &&
         std::isxdigit(static_cast<unsigned char>(text[position - 1])) != 0;
}

}  // namespace

std::string without_comments(std::string_view text) {
  std::string out(text);
  std::size_t i = 0;
  while (i < text.size()) {
    if ((text[i] == '"' || text[i] == '\'') && !is_digit_separator(text, i)) {
      i = end_of_literal(text, i);
      continue;
    }
    std::size_t end = i;
    if (text.substr(i, 2) == "//") {
      end = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t close = text.find("*/", i + 2);
      end = close == std::string_view::npos ? text.size() : close + 2;
    }
    for (std::size_t k = i; k < end; ++k) {
      if (text[k] != '\n') out[k] = ' ';
    }
    i = std::max(end, i + 1);
  }
  return out;
}

int line_of(std::string_view text, std::size_t position) {
  return 1 + static_cast<int>(std::count(
                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position), '\n'));
}

SourceFile make_source_file(std::string path, std::string text) {
  SourceFile file{.path = std::move(path), .text = std::move(text), .code = {}};
  if (file.is_cpp()) file.code = without_comments(file.text);
  return file;
}

std::vector<SourceFile> read_tree(const fs::path& root) {
  std::vector<SourceFile> files;
  for (auto entry = fs::recursive_directory_iterator(root); entry != fs::end(entry); ++entry) {
    if (entry->is_directory() && is_skipped_folder(entry->path())) {
      entry.disable_recursion_pending();
    }
    std::string path = fs::relative(entry->path(), root).generic_string();
    if (!entry->is_regular_file() || !is_text(path)) continue;
    std::ifstream in(entry->path(), std::ios::binary);
    files.push_back(make_source_file(std::move(path), {std::istreambuf_iterator<char>(in), {}}));
  }
  std::sort(files.begin(), files.end(),
            [](const auto& left, const auto& right) { return left.path < right.path; });
  return files;
}

}  // namespace dstrain::tidy
