#pragma once
#include <cstdint>
#include <list>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "runtime/base/deadline.h"
#include "runtime/base/token_proof.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Where the agents that srun or mpirun has started connect to. Each proves the job's secret and
/// says its rank. Who has not after some seconds is dropped, and of those who may still the oldest
/// makes room for the next. Never waits; not thread-safe.
class TaskListener {
 public:
  struct Settings {
    UniqueFd listener;  ///< as listen_tcp() makes it
    std::string secret;
    int ranks = 1;
  };
  explicit TaskListener(Settings settings) : settings_(std::move(settings)) {}

  /// An agent that has proved the secret: a non-blocking socket, on which its preamble follows.
  struct Arrival {
    int rank = 0;
    UniqueFd socket;
  };
  void add_polls(std::vector<pollfd>& fds) const;
  /// Takes back what add_polls() added, polled.
  std::vector<Arrival> advance(std::span<const pollfd> fds);
  /// Lets nobody in any more.
  void close();

 private:
  struct Stranger {
    UniqueFd socket;
    Nonce nonce{};
    Deadline deadline = Deadline::after(0);
    std::string said;
    bool proved = false;
  };
  enum class Next { wait, drop, arrive };
  void accept_all();
  Next read(Stranger& stranger);
  Next check_hello(Stranger& stranger) const;

  Settings settings_;
  std::list<Stranger> strangers_;
};

}  // namespace dstrain::launcher
