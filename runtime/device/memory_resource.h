#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <string>

#include "runtime/base/units.h"
#include "runtime/device/stream.h"

namespace dstrain {

/// Where bytes live.
enum class MemoryTier : std::uint8_t { device, host, pinned, nvme };
inline constexpr std::array<const char*, 4> memory_tier_names{"device", "host", "pinned", "nvme"};

/// What bytes are for. `buffers` is what moves data: gathered parameters, buckets, staging.
enum class MemoryCategory : std::uint8_t { parameters, gradients, optimizer, activations, buffers };
inline constexpr std::array<const char*, 5> memory_category_names{
    "parameters", "gradients", "optimizer", "activations", "buffers"};

constexpr const char* name_of(MemoryCategory category) {
  return memory_category_names.at(static_cast<std::size_t>(category));
}

/// Bytes by tier, then by category.
using CategoryBytes = std::array<Bytes, memory_category_names.size()>;
using TierBytes = std::array<CategoryBytes, memory_tier_names.size()>;

/// Those of one category.
constexpr Bytes& of(CategoryBytes& bytes, MemoryCategory category) {
  return bytes.at(static_cast<std::size_t>(category));
}
constexpr Bytes of(const CategoryBytes& bytes, MemoryCategory category) {
  return bytes.at(static_cast<std::size_t>(category));
}

/// Hands out memory of one tier. Addresses are aligned to 64 bytes. Thread-safe.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// Whose memory it is; that of the host is the CPU's.
  [[nodiscard]] virtual Device device() const noexcept = 0;
  /// Uninitialised memory, usable by work launched on `stream`. Throws Error{out_of_memory}, of
  /// a device's {out_of_device_memory}.
  virtual std::byte* allocate(Bytes bytes, StreamView stream) = 0;
  /// Takes the memory back once the work launched on `stream` so far is done.
  virtual void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept = 0;

 protected:
  /// Calls `release` once the work launched on `stream` so far is done, for which it waits when
  /// that is another device's: for memory of the host.
  static void after_work_on(StreamView stream, std::function<void()> release);
};

/// Ordinary memory of the host; on the CPU device it is the device's memory too. From 4 KiB on it
/// begins on a page, as direct I/O wants it, from 2 MiB on on a huge one.
class HostMemory final : public MemoryResource {
 public:
  [[nodiscard]] Device device() const noexcept override { return {}; }
  std::byte* allocate(Bytes bytes, StreamView stream) override;
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override;
};

/// Bytes in use now and at most, by category, of one tier. Thread-safe.
class MemoryLedger {
 public:
  /// Adds unless the total would pass `limit`; says whether it did.
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

/// Counts what passes through it under one category of `ledger`, and refuses what would take the
/// ledger's total over `limit` (0: no limit); refusals, also those of below, tell what is in use.
/// What is given back counts as free at once, though a worker stream frees it later: counts repeat
/// from run to run.
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
  [[nodiscard]] std::string in_use() const;  ///< of each category, whatever the limit

  MemoryResource& upstream_;
  MemoryLedger& ledger_;
  Options options_;
};

}  // namespace dstrain
