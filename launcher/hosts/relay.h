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

/// The links to all other hosts, in a process of their own. It beats to their agents and notices
/// the ones that fall silent, however busy, suspended or stopped the launcher is; it ends when the
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

  /// Forks: what this process holds open when it is called stays open in the relay, too.
  explicit Relay(const Settings& settings);
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  Relay(Relay&&) = delete;
  Relay& operator=(Relay&&) = delete;
  /// Waits, briefly, for the process to end; call it after the links are gone.
  ~Relay();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The launcher's end of the link to host number `index`; once each. It must not outlive this.
  std::unique_ptr<AgentLink> take_link(std::size_t index);
  /// Why the link to a host has ended, when the relay said so.
  std::string end_reason(std::size_t index);
  /// What the program that starts the agents has printed before they were all there.
  std::string starter_output();
  /// As TaskStarter::kill_reason(); waits for the relay to see that until the deadline.
  [[nodiscard]] std::string starter_kill(Deadline deadline) const;

 private:
  [[nodiscard]] std::string event(std::size_t about) const;

  pid_t pid_ = 0;
  std::vector<UniqueFd> ends_;
  UniqueFd events_;
  mutable std::map<std::size_t, std::string> reasons_;  ///< as far as they were read
};

}  // namespace dstrain::launcher
