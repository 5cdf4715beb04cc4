#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/plan/options.h"
#include "launcher/plan/resources.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// NAME=VALUE lines, with a shell's "export " before them or not; name and value are trimmed, and a
/// pair of quotes around the value is left out; blank lines and lines starting with '#' are
/// skipped. Adds to `warnings` a line for each value that a shell would expand. Throws Error{input}
/// "`file`:line: ...". No message has the value.
std::vector<EnvVar> parse_env_file(std::string_view text,
                                   std::string_view file,
                                   std::vector<std::string>& warnings);

/// `.deepspeed_env` (or the name in $DS_ENV_FILE) and `.dstrain_env`, from `home` and then from
/// `current`; later files win. Absent files are fine. Adds to `warnings` those of the files.
std::vector<EnvVar> read_env_files(const std::filesystem::path& home,
                                   const std::filesystem::path& current,
                                   std::vector<std::string>& warnings);

/// Those of $HOME and the working directory.
std::vector<EnvVar> read_env_files(std::vector<std::string>& warnings);

/// The name of a job, and the secret of its ranks.
struct JobIdentity {
  std::string id;
  std::string token;  ///< empty: only what the user exported
};

/// `bytes` random bytes of the kernel, in hexadecimal.
std::string random_hex(std::size_t bytes);

/// Variables that all ranks share: those of this process with the prefixes that travel, then env
/// files, then --env, then what the job itself needs (which wins), except the address of rank 0.
/// Values that the user exported stay: DSTRAIN_TOKEN, and DSTRAIN_DEVICE and DSTRAIN_TIMEOUT unless
/// their options were typed. Throws Error{usage} for an --env that names nothing.
std::vector<EnvVar> job_environment(const LaunchOptions& options,
                                    const HostPlan& plan,
                                    const JobIdentity& identity);

/// The variables that differ from rank to rank.
std::vector<RankSpec> rank_environments(const HostPlan& plan);

/// DSTRAIN_SILENCE (30): the seconds after which a silent host is lost. Throws Error{usage}.
double read_silence_seconds();

/// DSTRAIN_HANG (30): the least seconds without progress after which a hang is reported; 0: never.
/// Throws Error{usage}.
double read_hang_seconds();

/// Whether the value of `name` must not be shown.
bool is_secret(std::string_view name);

/// The work of one host.
struct HostTask {
  std::string host;     ///< as the user names it
  bool remote = false;  ///< reached over the network
  JobSpec spec;         ///< its ranks are consecutive
};

}  // namespace dstrain::launcher
