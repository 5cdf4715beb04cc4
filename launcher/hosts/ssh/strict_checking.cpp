#include "launcher/hosts/ssh/strict_checking.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include <glob.h>

#include <fmt/format.h>

#include "launcher/process/pipes.h"
#include "launcher/process/text.h"
#include "runtime/os/file.h"

namespace dstrain::launcher {
namespace {

constexpr int depth_max = 16;  // OpenSSH's own
constexpr std::string_view blanks = " \t\r";

struct ConfigLine {
  std::string keyword;  ///< in lower case
  std::string value;
};

/// "Keyword value" or "Keyword = value".
ConfigLine split_line(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(blanks), line.size());
  const std::size_t end = std::min(line.find_first_of(" \t\r=", begin), line.size());
  ConfigLine found{std::string(line.substr(begin, end - begin)), {}};
  for (char& c : found.keyword) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t value = line.find_first_not_of(" \t\r=", end);
  if (value == line.npos) return found;
  found.value = line.substr(value, line.find_last_not_of(blanks) + 1 - value);
  return found;
}

}  // namespace

std::string StrictCheckingConfig::rewrite(const std::filesystem::path& file,
                                          const std::filesystem::path& beneath) {
  return rewrite(file, beneath, 0);
}

std::string StrictCheckingConfig::rewrite(const std::filesystem::path& file,
                                          const std::filesystem::path& beneath,
                                          int depth) {
  std::ifstream lines(file);
  if (!lines || depth > depth_max) return {};
  std::string text;
  for (std::string line; std::getline(lines, line);) text += rewrite_line(line, beneath, depth);
  files_.push_back(make_text_file(text));
  return fmt::format("/proc/self/fd/{}", files_.back().get());
}

std::string StrictCheckingConfig::rewrite_line(const std::string& line,
                                               const std::filesystem::path& beneath,
                                               int depth) {
  const ConfigLine found = split_line(line);
  if (found.keyword == "host" || found.keyword == "match") return line + "\n";
  if (found.keyword == "stricthostkeychecking") return "ProxyCommand " + found.value + "\n";
  if (found.keyword != "include") return "\n";
  const Result<std::vector<std::string>> patterns = split_words(found.value);
  std::string text;
  if (!patterns.ok()) return text;
  for (const std::string& pattern : patterns.value()) {
    const bool relative = !pattern.starts_with('/') && !pattern.starts_with('~');
    const std::string whole = relative ? (beneath / pattern).string() : pattern;
    for (const std::string& path : any_paths_matching(whole, GLOB_TILDE)) {
      const std::string own = rewrite(path, beneath, depth + 1);
      if (!own.empty()) text += "Include " + own + "\n";
    }
  }
  return text;
}

}  // namespace dstrain::launcher
