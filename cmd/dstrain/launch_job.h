#pragma once
#include "launcher/job/launch.h"
#include "launcher/plan/command.h"
#include "launcher/plan/job_env.h"
#include "launcher/plan/resources.h"

namespace dstrain::cmd {

/// Whose standard output a job's is.
enum class Speaker { every_rank, rank_0 };

/// "20261121203040", the local time.
std::string time_stamp();

/// Of a job that is about to begin; its later launches keep it.
launcher::JobIdentity make_identity(const launcher::Resources& resources);

/// Puts together what run_job() takes: who does what where, and how the hosts are reached. Throws
/// Error{usage} when they cannot be.
launcher::LaunchJob make_launch_job(const launcher::LaunchOptions& options,
                                    const launcher::Command& command,
                                    const launcher::Resources& resources,
                                    const launcher::JobIdentity& identity,
                                    Speaker speaker);

}  // namespace dstrain::cmd
