#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace dstrain::test {

/// Two network namespaces joined by a pair of virtual Ethernet devices, standing in for two hosts:
/// processes in one reach those in the other through the network alone. They have no names and no
/// files: each lives as long as a process that holds it, which dies with this one, however that
/// ends. Nothing of the host's own network is touched.
class TwoNodes {
 public:
  /// The reason when this machine does not allow it.
  static std::optional<std::string> refusal();
  TwoNodes();
  TwoNodes(const TwoNodes&) = delete;
  TwoNodes& operator=(const TwoNodes&) = delete;
  TwoNodes(TwoNodes&&) = delete;
  TwoNodes& operator=(TwoNodes&&) = delete;
  ~TwoNodes();

  /// The command line that runs the one given on a node.
  [[nodiscard]] std::vector<std::string> on(int node, std::vector<std::string> command) const;
  [[nodiscard]] static std::string address(int node);
  /// Moves this thread, and what it starts from now on, to a node.
  void enter(int node) const;
  /// From now on nothing gets through, and no connection ends: somebody has pulled the cable.
  void cut() const;
  /// From now on nothing that the other node sends gets to this one, which is still heard, and no
  /// connection ends.
  void deafen(int node) const;

 private:
  void run_on(int node, const std::vector<std::string>& command) const;

  std::array<pid_t, 2> holders_{};
};

}  // namespace dstrain::test
