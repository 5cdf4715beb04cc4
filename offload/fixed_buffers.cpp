#include <algorithm>

#include "offload/uring_worker.h"
#include "runtime/base/units.h"

namespace dstrain::offload {
namespace {

constexpr unsigned buffers_max = 1024;
constexpr auto part_max = static_cast<std::size_t>(gibibyte);  // the kernel's limit for one

bool contains(std::span<const std::byte> outer, std::span<const std::byte> inner) {
  return outer.data() <= inner.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

}  // namespace

FixedBuffers::FixedBuffers(Ring& ring)
    : ring_(ring), possible_(::io_uring_register_buffers_sparse(ring.get(), buffers_max) == 0) {}

bool FixedBuffers::add(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  bool all = true;
  for (std::size_t at = 0; at < memory.size() && all; at += part_max) {
    all = add_part(memory.subspan(at, std::min(part_max, memory.size() - at)));
  }
  return all;
}

/// Refused, for lack of memory that may be locked, say, it is used as any other.
bool FixedBuffers::add_part(std::span<std::byte> memory) {
  if (!possible_ || buffers_.size() == buffers_max) return false;
  const iovec place{memory.data(), memory.size()};
  const auto number = static_cast<unsigned>(buffers_.size());
  if (::io_uring_register_buffers_update_tag(ring_.get(), number, &place, nullptr, 1) != 1) {
    return false;
  }
  buffers_.push_back(memory);
  return true;
}

void FixedBuffers::remove(std::span<std::byte> memory) noexcept {
  const std::lock_guard lock(mutex_);
  for (unsigned number = 0; number < buffers_.size(); ++number) {
    if (buffers_[number].empty() || !contains(memory, buffers_[number])) continue;
    const iovec nothing{};
    ::io_uring_register_buffers_update_tag(ring_.get(), number, &nothing, nullptr, 1);
    buffers_[number] = {};
  }
}

int FixedBuffers::find(std::span<const std::byte> memory) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      buffers_, [&](std::span<const std::byte> buffer) { return contains(buffer, memory); });
  return found == buffers_.end() ? -1 : static_cast<int>(found - buffers_.begin());
}

}  // namespace dstrain::offload
