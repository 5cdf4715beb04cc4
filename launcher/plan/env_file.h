#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// One environment variable.
struct EnvVar {
  std::string name;
  std::string value;
  bool operator==(const EnvVar&) const = default;
};

/// Whether `name` can name an environment variable: a letter or '_', then letters, digits, '_'.
bool is_env_name(std::string_view name);

/// Sets `name` in `variables`, replacing an earlier value.
void set_env(std::vector<EnvVar>& variables, std::string_view name, std::string_view value);

/// NAME=VALUE lines; name and value are trimmed; blank lines and lines starting with '#' are
/// skipped. Throws Error{input} "`file`:line: ...", without the value.
std::vector<EnvVar> parse_env_file(std::string_view text, std::string_view file);

/// `.deepspeed_env` (or the name in $DS_ENV_FILE) and `.dstrain_env`, from `home` and then from
/// `current`; later files win. Absent files are fine.
std::vector<EnvVar> read_env_files(const std::filesystem::path& home,
                                   const std::filesystem::path& current);

}  // namespace dstrain::launcher
