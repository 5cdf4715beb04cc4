#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tidy {

/// A text file of the repository.
struct SourceFile {
  std::string path;  ///< from the repository root, with slashes
  std::string text;
  std::string code;  ///< C++ only: the text with blanks for comments, the same lines and columns

  [[nodiscard]] bool in(std::string_view folder) const {
    return path.starts_with(std::string(folder) + "/");
  }
  [[nodiscard]] bool ends_with(std::string_view ending) const { return path.ends_with(ending); }
  [[nodiscard]] bool is_header() const { return ends_with(".h") || ends_with(".cuh"); }
  [[nodiscard]] bool is_cpp() const { return is_header() || ends_with(".cpp") || ends_with(".cu"); }
  [[nodiscard]] bool is_cmake_list() const {
    return path == "CMakeLists.txt" || ends_with("/CMakeLists.txt");
  }
};

/// A file as the rules see it.
SourceFile make_source_file(std::string path, std::string text);

/// The repository's text files below `root`, sorted by path; build and output folders left out.
std::vector<SourceFile> read_tree(const std::filesystem::path& root);

/// The text with every character of a comment but newlines turned into a blank.
std::string without_comments(std::string_view text);

/// 1 for the first line.
int line_of(std::string_view text, std::size_t position);

}  // namespace dstrain::tidy
