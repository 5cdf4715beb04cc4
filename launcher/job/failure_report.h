#pragma once
#include <cstdint>
#include <span>
#include <string>

#include <sys/types.h>

#include "launcher/job/supervisor.h"

namespace dstrain::launcher {

/// What is known of the rank that failed first.
struct FailedRank {
  RankFailure failure;
  std::string host;
  pid_t pid = 0;
  std::int64_t last_step = 0;  ///< 0: it took none, or does not say
  std::span<const std::string> last_lines;
  std::string log_file;  ///< empty: none
};

/// "ended with status 7", "was killed by SIGSEGV".
std::string describe_end(const RankFailure& failure);

/// The block that ends a failed run's stderr.
std::string failure_report(const FailedRank& rank);

}  // namespace dstrain::launcher
