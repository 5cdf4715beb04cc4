#pragma once
#include "launcher/job/launch.h"
#include "launcher/plan/command.h"
#include "launcher/plan/job_env.h"
#include "launcher/plan/resources.h"

namespace dstrain::cmd {

/// Which ranks' standard output the job prints.
enum class Speaker { every_rank, rank_0 };

/// "20261121203040", the local time.
std::string time_stamp();

/// Makes the identity of a job that is about to start; its later launches keep it.
launcher::JobIdentity make_identity(const launcher::Resources& resources);

/// Makes the input of run_job(): which ranks run where, and how to reach the hosts. Throws
/// Error{usage} if they cannot be reached.
launcher::LaunchJob make_launch_job(const launcher::LaunchOptions& options,
                                    const launcher::Command& command,
                                    const launcher::Resources& resources,
                                    const launcher::JobIdentity& identity,
                                    Speaker speaker);

}  // namespace dstrain::cmd
