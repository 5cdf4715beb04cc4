#pragma once
#include <utility>

#include <unistd.h>

namespace dstrain {

/// Sole owner of one C handle, with its size. `Traits` gives the type `Raw`, the value `null()` and
/// a noexcept `release(Raw)`.
template <class Traits>
class UniqueHandle {
 public:
  using Raw = typename Traits::Raw;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(Raw raw) noexcept : raw_(raw) {}
  UniqueHandle(UniqueHandle&& other) noexcept : raw_(std::exchange(other.raw_, Traits::null())) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, Traits::null());
    }
    return *this;
  }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  ~UniqueHandle() { reset(); }

  [[nodiscard]] Raw get() const noexcept { return raw_; }
  [[nodiscard]] explicit operator bool() const noexcept { return raw_ != Traits::null(); }
  /// Returns the handle without releasing it.
  [[nodiscard]] Raw detach() noexcept { return std::exchange(raw_, Traits::null()); }
  void reset() noexcept {
    if (raw_ != Traits::null()) Traits::release(std::exchange(raw_, Traits::null()));
  }

 private:
  Raw raw_ = Traits::null();
};

struct FdTraits {
  using Raw = int;
  static constexpr int null() noexcept { return -1; }
  static void release(int fd) noexcept { ::close(fd); }
};

/// Sole owner of a file descriptor.
using UniqueFd = UniqueHandle<FdTraits>;

}  // namespace dstrain
