#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "runtime/base/units.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// The kind of memory that holds bytes.
enum class MemoryTier : std::uint8_t { device, host, pinned, nvme };
inline constexpr std::array<const char*, 4> memory_tier_names{"device", "host", "pinned", "nvme"};

/// The purpose of bytes. `buffers` are for moving data: gathered parameters, buckets, staging.
enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, activations, buffers };
inline constexpr std::array<const char*, 5> memory_category_names{
    "parameters", "gradients", "optimizer", "activations", "buffers"};

constexpr const char* name_of(MemoryCategory category) {
  return memory_category_names.at(static_cast<std::size_t>(category));
}

/// Bytes by tier, then by category.
using CategoryBytes = std::array<Bytes, memory_category_names.size()>;
using TierBytes = std::array<CategoryBytes, memory_tier_names.size()>;

/// Returns the bytes of one category.
constexpr Bytes& of(CategoryBytes& bytes, MemoryCategory category) {
  return bytes.at(static_cast<std::size_t>(category));
}
constexpr Bytes of(const CategoryBytes& bytes, MemoryCategory category) {
  return bytes.at(static_cast<std::size_t>(category));
}

/// Allocates memory of one tier. Addresses are aligned to 64 bytes. Thread-safe.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// Returns the device of the memory; for host memory, the CPU.
  [[nodiscard]] virtual Device device() const noexcept = 0;
  /// Returns uninitialised memory for work launched on `stream`. Throws Error{out_of_memory}, or
  /// {out_of_device_memory} for a device's memory.
  virtual std::byte* allocate(Bytes bytes, StreamView stream) = 0;
  /// Frees the memory once the work launched on `stream` so far is done.
  virtual void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept = 0;

 protected:
  /// Calls `release` once the work launched on `stream` so far is done. Waits for it if the stream
  /// is of another device: for host memory.
  static void after_work_on(StreamView stream, std::function<void()> release);
};

/// Ordinary host memory; on the CPU device it is also the device's memory. Blocks from 4 KiB on
/// begin on a page, as direct I/O needs; from 2 MiB on, on a huge page.
class HostMemory final : public MemoryResource {
 public:
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;
};

/// Current and peak bytes by category, for one tier. Thread-safe.
class MemoryLedger {
 public:
  /// Adds unless the total would exceed `limit`; returns whether it did.
  [[nodiscard]] bool try_add(MemoryCategory category, Bytes bytes, Bytes limit) noexcept;
  void add(MemoryCategory category, Bytes bytes) noexcept;
  [[nodiscard]] Bytes current() const noexcept { return total_.current.load(); }
  [[nodiscard]] Bytes peak() const noexcept { return total_.peak.load(); }
  [[nodiscard]] Bytes peak(MemoryCategory category) const noexcept;
  [[nodiscard]] Bytes current(MemoryCategory category) const noexcept;

 private:
  struct Count {
    std::atomic<Bytes> current{0};
    std::atomic<Bytes> peak{0};
    void add(Bytes bytes) noexcept;
    void raise_peak(Bytes now) noexcept;
  };
  Count total_;
  std::array<Count, memory_category_names.size()> categories_;
};

/// One for each tier, by MemoryTier.
using MemoryLedgers = std::array<MemoryLedger, memory_tier_names.size()>;

/// Counts allocations under one category of `ledger`, and refuses those that would raise the
/// ledger's total above `limit` (0: no limit). Refusals, also those of the inner resource, list the
/// memory in use. Freed memory counts as free at once, even if a worker stream frees it later, so
/// that counts repeat from run to run.
class TrackedMemory final : public MemoryResource {
 public:
  struct Options {
    MemoryCategory category;
    Bytes limit = 0;
  };
  TrackedMemory(MemoryResource& upstream, MemoryLedger& ledger, Options options)
      : upstream_(upstream), ledger_(ledger), options_(options) {}
  [[nodiscard]] Device device() const noexcept override { return upstream_.device(); }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;

 private:
  [[noreturn]] void refuse(Bytes bytes) const;
  [[nodiscard]] std::string in_use() const;  ///< for each category, whatever the limit

  MemoryResource& upstream_;
  MemoryLedger& ledger_;
  Options options_;
};

}  // namespace dstrain
