#pragma once
#include <string>
#include <utility>
#include <variant>

#include "runtime/base/error.h"

namespace dstrain {

/// The reason for a missing value: one line that names the culprit.
struct Failure {
  std::string message;
  bool passing = false;  ///< a retry may succeed without any change
};

/// An outcome the caller must branch on: a value, or the reason there is none.
/// (GCC 12 has no std::expected in C++20, and nvcc refuses C++23.)
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : outcome_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : outcome_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const noexcept { return outcome_.index() == 0; }
  [[nodiscard]] const T& value() const {
    DSTRAIN_CHECK(ok(), "{}", error());
    return std::get<0>(outcome_);
  }
  /// Mutable, so that a move-only value can be taken out.
  [[nodiscard]] T& value() {
    DSTRAIN_CHECK(ok(), "{}", error());
    return std::get<0>(outcome_);
  }
  [[nodiscard]] const std::string& error() const { return failure().message; }
  [[nodiscard]] const Failure& failure() const { return std::get<1>(outcome_); }

 private:
  std::variant<T, Failure> outcome_;
};

}  // namespace dstrain
