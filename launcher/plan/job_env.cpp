#include "launcher/plan/job_env.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include <sys/random.h>
#include <unistd.h>

#include "launcher/process/text.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/os/shared_place.h"
#include "runtime/rank/compute_environment.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher {
namespace {

constexpr Bytes env_file_bytes_max = mebibyte;
constexpr double default_silence_seconds = 30;
constexpr double default_hang_seconds = 30;

/// The file must be trusted: its LD_PRELOAD, say, would run any program as this user.
void add_file(std::vector<EnvVar>& variables,
              const std::filesystem::path& path,
              std::vector<std::string>& warnings) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  const std::string text = read_trusted_text(path, env_file_bytes_max);
  for (const EnvVar& variable : parse_env_file(text, path.string(), warnings)) {
    set_env(variables, variable.name, variable.value);
  }
}

void add_typed(std::vector<EnvVar>& variables, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string name = assignment.substr(0, equals);
  if (!is_env_name(name)) {
    fail(ErrorCode::usage, "--env: \"{}\" is not a variable's name; write NAME or NAME=VALUE",
         name);
  }
  if (equals != std::string::npos) {
    set_env(variables, name, assignment.substr(equals + 1));
  } else if (const char* value = std::getenv(name.c_str())) {
    set_env(variables, name, value);
  } else {
    fail(ErrorCode::usage, "--env {}: the variable is not set here; write {}=VALUE", name, name);
  }
}

/// The variables of this process that go to every node.
std::vector<EnvVar> travelling_environment() {
  constexpr std::array<std::string_view, 7> prefixes{"NCCL",   "UCX", "MV2",    "MLFLOW",
                                                     "PYTHON", "OMP", "DSTRAIN"};
  std::vector<EnvVar> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const bool travels =
        changes_computing(text.substr(0, equals)) ||
        std::any_of(prefixes.begin(), prefixes.end(),
                    [&](std::string_view prefix) { return text.starts_with(prefix); });
    if (!travels) continue;
    variables.push_back(
        {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  return variables;
}

/// The launcher decides on the device by its own environment, and the ranks must use the same.
void check_device(const std::vector<EnvVar>& variables) {
  const char* const own = std::getenv(env::device);
  for (const EnvVar& variable : variables) {
    if (variable.name != env::device || variable.value == (own == nullptr ? "" : own)) continue;
    fail(ErrorCode::usage,
         "{}={} from --env or a file reaches only the ranks; pass --device instead", variable.name,
         variable.value);
  }
}

/// Sets a variable of the job unless the user did, in a file or in the environment.
void set_default(std::vector<EnvVar>& variables, const char* name, const std::string& value) {
  const bool in_file = std::any_of(variables.begin(), variables.end(),
                                   [&](const EnvVar& variable) { return variable.name == name; });
  if (in_file) return;
  const char* const exported = std::getenv(name);
  set_env(variables, name, exported != nullptr && *exported != '\0' ? exported : value);
}

/// Describes all nodes, unless the text is too long for the kernel: only messages need it.
void add_nodes(std::vector<EnvVar>& variables, const HostPlan& plan) {
  constexpr std::size_t bytes_max = std::size_t{64} << 10;
  RankNodes nodes;
  nodes.reserve(plan.hosts().size());
  for (const HostSlots& host : plan.hosts()) {
    nodes.push_back({host.made_up ? "" : host.host, static_cast<int>(host.slots.size())});
  }
  const std::string text = encode_rank_nodes(nodes);
  if (nodes.size() > 1 && text.size() <= bytes_max) set_env(variables, env::nodes, text);
}

/// DeepSpeed's remote shell removes them.
std::string_view without_quotes(std::string_view value) {
  if (value.size() < 2) return value;
  const char quote = value.front();
  const bool pair = (quote == '"' || quote == '\'') && value.find(quote, 1) == value.size() - 1;
  return pair ? value.substr(1, value.size() - 2) : value;
}

/// Whether a shell would put something in place of "$NAME", "${NAME}" or "$(command)".
bool is_expanded_by_shells(std::string_view value) {
  if (value.starts_with('\'')) return false;
  const std::size_t dollar = value.find('$');
  const char next = dollar + 1 < value.size() ? value[dollar + 1] : ' ';
  return dollar != value.npos && (next == '{' || next == '(' || next == '_' ||
                                  std::isalpha(static_cast<unsigned char>(next)) != 0);
}

}  // namespace

std::vector<EnvVar> parse_env_file(std::string_view text,
                                   std::string_view file,
                                   std::vector<std::string>& warnings) {
  std::vector<EnvVar> variables;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (line.starts_with("export ")) line = trim(line.substr(line.find(' ')));
    const std::size_t equals = line.find('=');
    const std::string_view name = trim(line.substr(0, equals));
    if (equals == line.npos || !is_env_name(name) || line.find('\0') != line.npos) {
      fail(ErrorCode::input, "{}:{}: a line must be NAME=VALUE", file, number);
    }
    const std::string_view value = trim(line.substr(equals + 1));
    if (is_expanded_by_shells(value)) {
      warnings.push_back(
          fmt::format("{}:{}: {}: its $ is passed on unchanged, since no shell reads this file; "
                      "write the value "
                      "itself, or pass --env {}=..., which your shell expands",
                      file, number, name, name));
    }
    set_env(variables, name, without_quotes(value));
  }
  return variables;
}

std::vector<EnvVar> read_env_files(const std::filesystem::path& home,
                                   const std::filesystem::path& current,
                                   std::vector<std::string>& warnings) {
  const char* const named = std::getenv("DS_ENV_FILE");
  const std::string first = named != nullptr && *named != '\0' ? named : ".deepspeed_env";
  std::vector<EnvVar> variables;
  for (const std::filesystem::path& directory : {home, current}) {
    if (directory.empty()) continue;
    add_file(variables, directory / first, warnings);
    add_file(variables, directory / ".dstrain_env", warnings);
  }
  return variables;
}

std::vector<EnvVar> read_env_files(std::vector<std::string>& warnings) {
  const char* const home = std::getenv("HOME");
  std::error_code ignored;
  return read_env_files(home != nullptr ? home : "", std::filesystem::current_path(ignored),
                        warnings);
}

std::string random_hex(std::size_t bytes) {
  std::string random(bytes, '\0');
  std::size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = ::getrandom(random.data() + filled, bytes - filled, 0);
    if (got < 0 && errno != EINTR) fail_errno(errno, "getrandom");
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const char byte : random) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::vector<EnvVar> job_environment(const LaunchOptions& options,
                                    const HostPlan& plan,
                                    const JobIdentity& identity) {
  std::vector<EnvVar> variables = travelling_environment();
  for (const EnvVar& variable : options.env_files) {
    set_env(variables, variable.name, variable.value);
  }
  for (const std::string& assignment : options.env) add_typed(variables, assignment);
  check_device(variables);

  set_env(variables, env::world_size, std::to_string(plan.world_size()));
  set_env(variables, env::cross_size, std::to_string(plan.hosts().size()));
  add_nodes(variables, plan);
  set_env(variables, env::job, identity.id);
  set_env(variables, env::log_level, options.log_level);
  if (!identity.token.empty()) set_default(variables, env::token, identity.token);
  set_default(variables, env::timeout, "600");
  set_default(variables, env::device, "auto");
  if (options.timeout_seconds) {
    set_env(variables, env::timeout, std::to_string(*options.timeout_seconds));
  }
  if (options.device) set_env(variables, env::device, *options.device);
  if (options.port_range) set_env(variables, env::port_range, to_string(*options.port_range));
  if (options.device_memory_bytes > 0) {
    set_env(variables, env::device_memory, std::to_string(options.device_memory_bytes));
  }
  if (options.host_memory_bytes > 0) {
    set_env(variables, env::host_memory, std::to_string(options.host_memory_bytes));
  }
  return variables;
}

std::vector<RankSpec> rank_environments(const HostPlan& plan) {
  std::vector<RankSpec> ranks;
  for (const RankAssignment& assigned : plan.ranks()) {
    const std::string local_size = std::to_string(plan.local_size(assigned));
    RankSpec rank{assigned.rank, assigned.local_rank, {}};
    rank.env = {{env::rank, std::to_string(assigned.rank)},
                {env::local_rank, std::to_string(assigned.local_rank)},
                {env::local_world_size, local_size},
                {env::local_size, local_size},
                {env::cross_rank, std::to_string(assigned.node_rank)}};
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

double read_silence_seconds() {
  const char* const text = std::getenv(env::silence);
  if (text == nullptr) return default_silence_seconds;
  const std::optional<double> seconds = parse_number<double>(text);
  if (seconds && *seconds >= 0.1 && *seconds <= 86'400) return *seconds;
  fail(ErrorCode::usage, "environment variable {}: must be 0.1..86400 seconds, got \"{}\"",
       env::silence, text);
}

double read_hang_seconds() {
  const char* const text = std::getenv(env::hang);
  if (text == nullptr) return default_hang_seconds;
  const std::optional<double> seconds = parse_number<double>(text);
  if (seconds && (*seconds == 0 || (*seconds >= 0.1 && *seconds <= 86'400))) return *seconds;
  fail(ErrorCode::usage, "environment variable {}: must be 0 or 0.1..86400 seconds, got \"{}\"",
       env::hang, text);
}

bool is_secret(std::string_view name) {
  constexpr std::array<std::string_view, 5> words{"TOKEN", "KEY", "SECRET", "PASS", "CREDENTIAL"};
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return upper.find(word) != upper.npos; });
}

}  // namespace dstrain::launcher
