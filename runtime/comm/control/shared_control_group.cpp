#include "runtime/comm/control/shared_control_group.h"

#include <algorithm>

#include "runtime/comm/shm/segment_exchange.h"

namespace dstrain::comm {
namespace {

/// A slot holds the length of the whole value, then a piece of it.
constexpr std::size_t piece_bytes = control_slot_bytes - sizeof(std::uint64_t);

}  // namespace

SharedControlGroup::SharedControlGroup(std::shared_ptr<const Segment> segment,
                                       GroupBarrier::Options options)
    : ControlGroup({options.rank, static_cast<int>(segment->control_members().size())}),
      segment_(std::move(segment)),
      timeout_seconds_(options.timeout_seconds),
      barrier_(segment_->control_group(), segment_->control_members(), std::move(options)) {}

void SharedControlGroup::agree(const Call& call) {
  barrier_.announce(call);
  barrier_.agree();
}

/// A slot that was read in a round is written again in the round after the next, after the barrier
/// that all ranks pass in between.
std::vector<std::string> SharedControlGroup::exchange(const Call& call, std::string_view own) {
  barrier_.announce(call);
  std::vector<std::string> texts(static_cast<std::size_t>(size()));
  std::size_t longest = 0;
  for (std::size_t at = 0; at == 0 || at < longest; at += piece_bytes, ++round_) {
    show(own, at);
    at == 0 ? barrier_.agree() : barrier_.arrive_and_wait();
    longest = take(texts);
  }
  return texts;
}

void SharedControlGroup::show(std::string_view own, std::size_t at) {
  std::byte* const slot = segment_->control_slot(rank(), round_);
  const std::uint64_t length = own.size();
  std::memcpy(slot, &length, sizeof(length));
  own.substr(std::min(at, own.size()))
      .copy(reinterpret_cast<char*>(slot + sizeof(length)), piece_bytes);
}

/// Appends the contents of this round's slots; returns the bytes of the longest value.
std::size_t SharedControlGroup::take(std::vector<std::string>& texts) const {
  std::size_t longest = 0;
  for (int rank = 0; rank < size(); ++rank) {
    const std::byte* const slot = segment_->control_slot(rank, round_);
    std::uint64_t length = 0;
    std::memcpy(&length, slot, sizeof(length));
    std::string& text = texts[static_cast<std::size_t>(rank)];
    text.append(reinterpret_cast<const char*>(slot + sizeof(length)),
                std::min(piece_bytes, static_cast<std::size_t>(length) - text.size()));
    longest = std::max(longest, static_cast<std::size_t>(length));
  }
  return longest;
}

SharedControlGroup::SplitMemory SharedControlGroup::split_memory(Communicator::Split split) {
  SplitPlan plan = plan_split(gather(split), rank());
  auto segment = split_segment(
      plan, [&](const SegmentTicket& own) { return gather(own); }, 0, timeout_seconds_);
  return {std::move(plan), std::move(segment)};
}

std::unique_ptr<ControlGroup> SharedControlGroup::split(Communicator::Split split) {
  SplitMemory part = split_memory(split);
  return std::make_unique<SharedControlGroup>(
      std::move(part.segment),
      GroupBarrier::Options{.rank = part.plan.rank, .timeout_seconds = timeout_seconds_});
}

std::vector<std::unique_ptr<ControlGroup>> make_thread_control_groups(int size,
                                                                      double timeout_seconds) {
  const auto segment = std::make_shared<const Segment>(Segment::create(size, 0));
  std::vector<std::unique_ptr<ControlGroup>> groups;
  groups.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    groups.push_back(std::make_unique<SharedControlGroup>(
        segment, GroupBarrier::Options{.rank = rank, .timeout_seconds = timeout_seconds}));
  }
  return groups;
}

}  // namespace dstrain::comm
