#pragma once
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "runtime/base/unique_handle.h"

namespace dstrain::test {

/// A port of loopback that was free a moment ago.
int free_port();

/// A program and the whole environment it gets, as NAME=VALUE.
struct Program {
  std::vector<std::string> arguments;  ///< the first is the path
  std::vector<std::string> environment;
};

/// Where a rank runs and how it meets the others.
struct RankPlace {
  int rank = 0;
  int world = 1;
  int local_rank = 0;
  int local_world = 1;
  int node = 0;
  std::string address = "127.0.0.1";
  int port = 0;
  int timeout_seconds = 300;
};
std::vector<std::string> environment_of(const RankPlace& place);

/// The places of a job whose node k has `ranks_per_node[k]` ranks.
std::vector<RankPlace> places_of(const std::vector<int>& ranks_per_node);

/// A process whose stdout and stderr come here, ended at the latest at the end of the scope.
class RankProcess {
 public:
  explicit RankProcess(Program program);
  RankProcess(RankProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::move(other.output_)) {}
  RankProcess& operator=(RankProcess&&) = delete;
  RankProcess(const RankProcess&) = delete;
  RankProcess& operator=(const RankProcess&) = delete;
  ~RankProcess();

  [[nodiscard]] int pid() const { return pid_; }
  void kill() const;
  /// The next line it prints; empty at its end.
  std::string read_line();
  /// All that it still prints.
  std::string read_all();
  /// Its exit status, or minus the signal that ended it.
  int wait();

 private:
  pid_t pid_ = 0;
  UniqueFd output_;
};

}  // namespace dstrain::test
