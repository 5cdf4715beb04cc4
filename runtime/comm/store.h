#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace dstrain::comm {

/// Keys and values shared by the ranks of one job: their rendezvous. Thread-safe. Values are small.
class Store {
 public:
  virtual ~Store() = default;
  /// Sets or replaces the value of `key`.
  virtual void set(const std::string& key, std::string_view value) = 0;
  /// Waits until `key` exists. Throws Error{timeout} that names the key after `timeout_seconds`.
  virtual std::string get(const std::string& key, double timeout_seconds) = 0;
  /// Adds to a counter that starts at 0 and returns the new value.
  virtual std::int64_t add(const std::string& key, std::int64_t delta) = 0;
};

}  // namespace dstrain::comm
