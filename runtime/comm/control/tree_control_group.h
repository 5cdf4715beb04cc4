#pragma once
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/comm/tcp/tcp_mesh.h"

namespace dstrain::comm {

/// The control group of ranks that reach each other through a network: a binary tree of TCP
/// connections, in which rank r has the parent (r - 1) / 2. Values go up to rank 0 and all of them
/// down again: 2 log2(N) hops, and no rank has more than three connections. Each connection has a
/// second one beside it for failures: who finds one tells its neighbours, and they theirs, so that
/// all ranks that wait hear of the same cause.
class TreeControlGroup final : public ControlGroup {
 public:
  struct Options {
    TcpOptions tcp;
    std::vector<int> names{};      ///< what messages call the ranks; empty: 0, 1, ...
    std::function<void()> look{};  ///< called now and then in waits; may throw
  };
  /// Connects; the ranks find each other in `store`, which must outlive this and tells who is
  /// missing. Throws as connect_mesh().
  TreeControlGroup(Store& store, Options options);
  TreeControlGroup(const TreeControlGroup&) = delete;
  TreeControlGroup& operator=(const TreeControlGroup&) = delete;
  TreeControlGroup(TreeControlGroup&&) = delete;
  TreeControlGroup& operator=(TreeControlGroup&&) = delete;
  /// Tells the neighbours that this rank leaves, unless it fails.
  ~TreeControlGroup() override;

  std::vector<std::string> exchange(const Call& call, std::string_view own) override;
  void abort() noexcept override;
  /// Makes waiting and later calls of all ranks throw this error. Thread-safe.
  void spread(ErrorCode code, const std::string& message) noexcept;

 private:
  struct Neighbour {
    int rank = 0;
    UniqueFd values;
    UniqueFd alarm;
    bool left = false;
  };
  struct Frame;

  Frame receive(Neighbour& from);
  void receive_bytes(Neighbour& from, std::span<std::uint8_t> bytes);
  void send(Neighbour& to, const Frame& frame);
  void wait_for(Neighbour& peer, short events);
  void hear(Neighbour& from);
  [[noreturn]] void fail_lost(Neighbour& peer);
  void check_same(const Frame& frame, const Neighbour& from);
  void check_not_failed() const;
  void say_that_this_rank_waits();
  [[nodiscard]] std::vector<int> missing_ranks(int one);
  [[noreturn]] void fail_with(ErrorCode code, const std::string& message);
  [[nodiscard]] std::string key_of(int rank) const;
  [[nodiscard]] int name_of(int rank) const;
  [[nodiscard]] std::string doing() const;

  Store& store_;
  Options options_;
  UniqueFd wake_;                      ///< an eventfd: a failure became known in another thread
  std::vector<Neighbour> neighbours_;  ///< the parent first, if there is one, then the children
  Call current_{Operation::join, DType::u8, 0, 0};
  std::int64_t operations_ = 0;
  std::int64_t told_ = 0;  ///< the last operation of which the store knows that this rank waits
  mutable std::mutex mutex_;
  bool failed_ = false;
  ErrorCode failure_ = ErrorCode::comm;
  std::string why_;
};

}  // namespace dstrain::comm
