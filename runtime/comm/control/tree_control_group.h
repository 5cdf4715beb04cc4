#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/comm/control/control_group.h"
#include "runtime/comm/control/stored_waits.h"
#include "runtime/comm/tcp/tcp_mesh.h"

namespace dstrain::comm {

/// The control group of ranks that reach each other through a network: a binary tree of TCP
/// connections, in which rank r has the parent (r - 1) / 2. Values go up to rank 0, and all of them
/// go down again: 2 log2(N) hops, with at most three connections per rank. Two ranks agree in one
/// hop. Each connection has a second one beside it for failures: a rank that finds one tells its
/// neighbours, which tell theirs, so that all waiting ranks report the same cause. Ranks behind a
/// busy one learn of it through the store.
class TreeControlGroup final : public ControlGroup {
 public:
  struct Options {
    TcpOptions tcp;
    /// Set if this group is a part of a larger one. Its owner reports failures to it. Must outlive
    /// this group.
    StoredWaits* waits = nullptr;
    ControlGroup* within = nullptr;  ///< a group whose failure ends the waits of this one
  };
  /// Connects; the ranks find each other in `store`, which must outlive this. Throws as
  /// connect_mesh().
  TreeControlGroup(Store& store, Options options);
  TreeControlGroup(const TreeControlGroup&) = delete;
  TreeControlGroup& operator=(const TreeControlGroup&) = delete;
  TreeControlGroup(TreeControlGroup&&) = delete;
  TreeControlGroup& operator=(TreeControlGroup&&) = delete;
  /// Tells the neighbours that this rank leaves, unless it is failing.
  ~TreeControlGroup() override;

  void agree(const Call& call) override;
  std::vector<std::string> exchange(const Call& call, std::string_view own) override;
  std::unique_ptr<ControlGroup> split(Communicator::Split split) override;
  void spread(const GroupFailure& failure) noexcept override;
  std::optional<GroupFailure> failure() override;

 private:
  struct Neighbour {
    int rank = 0;
    UniqueFd values;
    UniqueFd alarm;
    bool left = false;
  };
  struct Frame;

  void begin(const Call& call);
  [[nodiscard]] std::span<Neighbour> children();
  Frame receive(Neighbour& from);
  void receive_bytes(Neighbour& from, std::span<std::uint8_t> bytes);
  void send(Neighbour& to, const Frame& frame);
  void wait_for(Neighbour& peer, short events);
  void look_elsewhere();
  void hear_all();
  void hear(Neighbour& from);
  void pass_on(const GroupFailure& failure) noexcept;
  [[noreturn]] void fail_lost(Neighbour& peer);
  void check_same(const Frame& frame, const Neighbour& from);
  [[nodiscard]] std::optional<GroupFailure> known() const;
  void check_not_failed() const;
  [[noreturn]] void fail_late(const Neighbour& peer);
  [[noreturn]] void fail_with(ErrorCode code, const std::string& message);
  [[nodiscard]] std::string doing() const;

  Store& store_;
  Options options_;
  std::unique_ptr<StoredWaits> own_waits_;  ///< null if the options have `waits`
  UniqueFd wake_;                      ///< an eventfd: a failure became known in another thread
  std::vector<Neighbour> neighbours_;  ///< the parent first, if there is one, then the children
  Call current_{Operation::join, DType::u8, 0, 0};
  std::int64_t operations_ = 0;
  int splits_ = 0;
  mutable std::mutex mutex_;
  std::optional<GroupFailure> failure_;  ///< guarded by mutex_
};

}  // namespace dstrain::comm
