#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/env_file.h"
#include "launcher/options.h"
#include "launcher/placement.h"
#include "launcher/protocol.h"

namespace dstrain::launcher {

/// What a job is called and where its ranks meet.
struct JobIdentity {
  std::string id;
  std::string token;
  std::string master_addr;
  int master_port = 0;
};

/// `bytes` random bytes of the kernel, in hexadecimal.
std::string random_hex(std::size_t bytes);

/// Variables that all ranks share: env files, then --env, then what the job itself needs (which
/// wins). Values that the user exported stay: DSTRAIN_TOKEN, and DSTRAIN_DEVICE and DSTRAIN_TIMEOUT
/// unless their options were typed. Throws Error{usage} for an --env that names nothing.
std::vector<EnvVar> job_environment(const LaunchOptions& options,
                                    const HostPlan& plan,
                                    const JobIdentity& identity);

/// The variables that differ from rank to rank.
std::vector<RankSpec> rank_environments(const HostPlan& plan, bool gpus);

/// Whether the value of `name` must not be shown.
bool is_secret(std::string_view name);

}  // namespace dstrain::launcher
