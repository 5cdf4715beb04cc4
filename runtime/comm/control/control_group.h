#pragma once
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "runtime/comm/call.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/group_failure.h"

namespace dstrain::comm {

/// Exchanges host values other than tensors between the ranks of a job: votes, counts, texts,
/// errors. No device and no tensor communicator is involved. Every rank calls the same functions in
/// the same order; each returns when all ranks have called it, so each is a barrier. Not ordered
/// with the collectives of a Communicator. One thread at a time, except abort().
///
/// Waits throw Error{timeout} that names the missing ranks, Error{comm} that names a rank that has
/// died or left, or two ranks with different calls, or Error{aborted}. After that a group may only
/// be aborted and destroyed.
class ControlGroup {
 public:
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;
  ControlGroup(ControlGroup&&) = delete;
  ControlGroup& operator=(ControlGroup&&) = delete;
  virtual ~ControlGroup() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  /// Returns the `own` of every rank, by rank. T is plain data.
  template <class T>
  requires std::is_trivially_copyable_v<T> &&
      (!std::is_same_v<T, bool>)std::vector<T> gather(const T& own) {
    const std::string_view bytes(reinterpret_cast<const char*>(&own), sizeof(T));
    const std::vector<std::string> texts =
        exchange({Operation::gather, DType::u8, 0, sizeof(T)}, bytes);
    std::vector<T> values(texts.size());
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      std::memcpy(&values[rank], texts[rank].data(), sizeof(T));
    }
    return values;
  }

  /// Returns the `own` of every rank, by rank, of any lengths. Needs the memory of all of them.
  std::vector<std::string> gather_texts(std::string_view own) {
    return exchange({Operation::gather_texts, DType::u8, 0, 0}, own);
  }

  /// Returns the text of rank `root`; those of other ranks are ignored.
  std::string broadcast(std::string_view own, int root);

  /// Whether `own` is true on any rank.
  bool any(bool own);

  /// Returns once every rank has called it.
  void barrier() { agree({Operation::barrier, DType::u8, 0, 0}); }

  /// Returns once every rank has called it with the same `call`.
  virtual void agree(const Call& call) = 0;
  /// Returns the `own` of every rank; all must give the same `call`. The other functions are built
  /// on this.
  virtual std::vector<std::string> exchange(const Call& call, std::string_view own) = 0;

  /// Returns the control group of the ranks that give the same color, ordered by key, then by rank.
  /// Every rank of this one calls it.
  virtual std::unique_ptr<ControlGroup> split(Communicator::Split split) = 0;

  /// Makes waiting and later calls of all ranks throw this failure; the first one is kept. Reaches
  /// waiting ranks at once, and ranks behind a busy one within two seconds. Thread-safe.
  virtual void spread(const GroupFailure& failure) noexcept = 0;
  /// spread() of an Error{aborted} that names this rank. Thread-safe.
  void abort() noexcept;
  /// Call now and then while waiting elsewhere. Returns why this group has failed, if that is
  /// known.
  virtual std::optional<GroupFailure> failure() = 0;

 protected:
  explicit ControlGroup(GroupRank own) : rank_(own.rank), size_(own.size) {}

 private:
  int rank_;
  int size_;
};

/// Makes the control group of a world of one rank.
std::unique_ptr<ControlGroup> make_self_control_group();

}  // namespace dstrain::comm
