#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "launcher/plan/env_file.h"
#include "launcher/plan/options.h"
#include "launcher/plan/placement.h"
#include "launcher/protocol/protocol.h"

namespace dstrain::launcher {

/// What a job is called, and the secret of its ranks.
struct JobIdentity {
  std::string id;
  std::string token;  ///< empty: only what the user exported
};

/// `bytes` random bytes of the kernel, in hexadecimal.
std::string random_hex(std::size_t bytes);

/// Variables that all ranks share: those of this process with the prefixes that travel, then env
/// files, then --env, then what the job itself needs (which wins), save where rank 0 is. Values
/// that the user exported stay: DSTRAIN_TOKEN, and DSTRAIN_DEVICE and DSTRAIN_TIMEOUT unless their
/// options were typed. Throws Error{usage} for an --env that names nothing.
std::vector<EnvVar> job_environment(const LaunchOptions& options,
                                    const HostPlan& plan,
                                    const JobIdentity& identity);

/// The variables that differ from rank to rank.
std::vector<RankSpec> rank_environments(const HostPlan& plan);

/// Whether the value of `name` must not be shown.
bool is_secret(std::string_view name);

}  // namespace dstrain::launcher
