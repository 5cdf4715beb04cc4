#include "tests/stand_in/nccl_rank.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"
#include "tests/stand_in/device_memory.h"

namespace dstrain::stand_in {
namespace {

/// The order in which the ranks' values of a part are added.
std::vector<int> order_of_ranks(int size, int part) {
  std::vector<int> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(static_cast<unsigned>(20'261'126 + part));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

float add(float left, float right) {
  return left + right;
}
BFloat16 add(BFloat16 left, BFloat16 right) {
  return to_bfloat16(to_float(left) + to_float(right));
}
Float16 add(Float16 left, Float16 right) {
  return to_float16(to_float(left) + to_float(right));
}
std::uint32_t add(std::uint32_t left, std::uint32_t right) {
  return left + right;
}
std::uint64_t add(std::uint64_t left, std::uint64_t right) {
  return left + right;
}

template <class T>
void add_values(std::byte* sum, const std::byte* terms, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
    T left;
    T right;
    std::memcpy(&left, sum + at, sizeof(T));
    std::memcpy(&right, terms + at, sizeof(T));
    left = add(left, right);
    std::memcpy(sum + at, &left, sizeof(T));
  }
}

void add_terms(std::byte* sum, const std::byte* terms, std::size_t bytes, ncclDataType_t type) {
  if (type == ncclFloat32) add_values<float>(sum, terms, bytes);
  if (type == ncclBfloat16) add_values<BFloat16>(sum, terms, bytes);
  if (type == ncclFloat16) add_values<Float16>(sum, terms, bytes);
  if (type == ncclInt32) add_values<std::uint32_t>(sum, terms, bytes);
  if (type == ncclInt64) add_values<std::uint64_t>(sum, terms, bytes);
}

}  // namespace

void NcclRank::tell() {
  shared_.changes.fetch_add(1);
  futex_wake_all(shared_.changes);
}

template <class Condition>
void NcclRank::wait_until(const Condition& condition) {
  constexpr double look_seconds = 0.02;  // how often it checks for an abort
  while (!aborted_) {
    const std::uint32_t seen = shared_.changes.load();
    if (condition()) return;
    const MemoryAccessPause pause;  // a rank may be slow, or never come
    futex_wait(shared_.changes, seen, look_seconds);
  }
}

void NcclRank::barrier() {
  if (aborted_) return;
  const std::uint64_t all = ++barriers_ * static_cast<std::uint64_t>(size_);
  shared_.arrived.fetch_add(1);
  tell();
  wait_until([&] { return shared_.arrived.load() >= all; });
}

void NcclRank::all_gather(const std::byte* from, std::byte* to, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes && !aborted_; at += Segment::slot_bytes) {
    const std::size_t count = std::min(Segment::slot_bytes, bytes - at);
    std::memcpy(slot(rank_), from + at, count);
    barrier();
    for (int r = 0; r < size_ && !aborted_; ++r) {
      std::memcpy(to + static_cast<std::size_t>(r) * bytes + at, slot(r), count);
    }
    barrier();
  }
}

void NcclRank::reduce_scatter(const std::byte* from,
                              std::byte* to,
                              std::size_t bytes,
                              ncclDataType_t type) {
  const std::vector<int> order = order_of_ranks(size_, rank_);
  const std::size_t most = Segment::slot_bytes / Segment::ranks_most;
  for (std::size_t at = 0; at < bytes && !aborted_; at += most) {
    const std::size_t count = std::min(most, bytes - at);
    for (int part = 0; part < size_; ++part) {
      const auto p = static_cast<std::size_t>(part);
      std::memcpy(slot(rank_) + p * most, from + p * bytes + at, count);
    }
    barrier();
    if (aborted_) return;
    const std::size_t own = static_cast<std::size_t>(rank_) * most;
    std::memcpy(to + at, slot(order[0]) + own, count);
    for (std::size_t i = 1; i < order.size(); ++i) {
      add_terms(to + at, slot(order[i]) + own, count, type);
    }
    barrier();
  }
}

void NcclRank::broadcast(const std::byte* from, std::byte* to, std::size_t bytes, int root) {
  for (std::size_t at = 0; at < bytes && !aborted_; at += Segment::slot_bytes) {
    const std::size_t count = std::min(Segment::slot_bytes, bytes - at);
    if (rank_ == root) std::memcpy(slot(root), from + at, count);
    barrier();
    if (!aborted_) std::memcpy(to + at, slot(root), count);
    barrier();
  }
}

/// Sends or receives a piece if possible. Returns whether it did.
bool NcclRank::advance(Message& message) {
  if (message.done == message.bytes) return false;
  const bool sends = message.way == Message::Way::send;
  const auto source = static_cast<std::size_t>(sends ? rank_ : message.peer);
  const auto target = static_cast<std::size_t>(sends ? message.peer : rank_);
  Segment::Mailbox& box = shared_.mail[source][target];
  const bool full = box.sent.load() != box.taken.load();
  if (full == sends) return false;
  const std::size_t count = std::min(box.piece.size(), message.bytes - message.done);
  std::byte* const data = message.data + message.done;
  sends ? std::memcpy(box.piece.data(), data, count) : std::memcpy(data, box.piece.data(), count);
  (sends ? box.sent : box.taken).fetch_add(1);
  message.done += count;
  tell();
  return true;
}

void NcclRank::exchange(std::vector<Message> messages) {
  wait_until([&] {
    for (Message& message : messages) {
      while (advance(message)) {
      }
    }
    return std::ranges::all_of(messages, [](const Message& m) { return m.done == m.bytes; });
  });
}

}  // namespace dstrain::stand_in
