#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launcher/hosts/agent_link.h"
#include "launcher/hosts/task_links.h"
#include "runtime/base/deadline.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Holds the links to all other hosts in a separate process, which sends beats to their agents and
/// notices silent ones even while the launcher is busy, suspended or stopped. It ends when the
/// launcher has closed all its ends. Owned by the launcher's only thread.
class Relay {
 public:
  using Open = std::function<std::unique_ptr<AgentLink>(const std::string& host)>;
  struct Settings {
    std::vector<std::string> hosts;  ///< one entry per link
    Open open;                       ///< called in the relay's process, for each
    std::optional<TaskStart> tasks;  ///< instead: one program starts all agents, a rank each
    double silence_seconds = 30;     ///< after which a silent host, or launcher, is gone
  };

  /// Forks: descriptors that this process holds open stay open in the relay too.
  explicit Relay(const Settings& settings);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  Relay(Relay&&) = delete;
  Relay& operator=(Relay&&) = delete;
  /// Waits briefly for the process to end. The links must be gone.
  ~Relay();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The launcher's end of the link to host number `index`; call it once for each. The link must
  /// not outlive this.
  std::unique_ptr<AgentLink> take_link(std::size_t index);
  /// Why the link to a host ended, if the relay reported it.
  std::string end_reason(std::size_t index);
  /// The output of the program that starts the agents, until all have connected.
  std::string starter_output();
  /// As TaskStarter::kill_reason(); waits until the deadline for the relay to report it.
  [[nodiscard]] std::string starter_kill(Deadline deadline) const;

 private:
  [[nodiscard]] std::string event(std::size_t about) const;

  pid_t pid_ = 0;
  std::vector<UniqueFd> ends_;
  UniqueFd events_;
  mutable std::map<std::size_t, std::string> reasons_;  ///< as far as they were read
};

}  // namespace dstrain::launcher
