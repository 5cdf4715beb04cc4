#include "launcher/plan/env_file.h"

#include <algorithm>
#include <cstdlib>

#include "launcher/plan/words.h"
#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace dstrain::launcher {
namespace {

constexpr Bytes env_file_bytes_max = mebibyte;

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

void add_file(std::vector<EnvVar>& variables, const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const std::string text = read_text_file(path, env_file_bytes_max);
  for (const EnvVar& variable : parse_env_file(text, path.string())) {
    set_env(variables, variable.name, variable.value);
  }
}

}  // namespace

bool is_env_name(std::string_view name) {
  return !name.empty() && starts_name(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return starts_name(c) || (c >= '0' && c <= '9'); });
}

void set_env(std::vector<EnvVar>& variables, std::string_view name, std::string_view value) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const EnvVar& variable) { return variable.name == name; });
  if (found != variables.end()) {
    found->value = value;
  } else {
    variables.push_back({std::string(name), std::string(value)});
  }
}

std::vector<EnvVar> parse_env_file(std::string_view text, std::string_view file) {
  std::vector<EnvVar> variables;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    const std::string_view name = trim(line.substr(0, equals));
    if (equals == line.npos || !is_env_name(name) || line.find('\0') != line.npos) {
      fail(ErrorCode::input, "{}:{}: a line must be NAME=VALUE", file, number);
    }
    set_env(variables, name, trim(line.substr(equals + 1)));
  }
  return variables;
}

std::vector<EnvVar> read_env_files(const std::filesystem::path& home,
                                   const std::filesystem::path& current) {
  const char* const named = std::getenv("DS_ENV_FILE");
  const std::string first = named != nullptr && *named != '\0' ? named : ".deepspeed_env";
  std::vector<EnvVar> variables;
  for (const std::filesystem::path& directory : {home, current}) {
    if (directory.empty()) continue;
    add_file(variables, directory / first);
    add_file(variables, directory / ".dstrain_env");
  }
  return variables;
}

}  // namespace dstrain::launcher
