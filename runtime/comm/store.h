#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::comm {

/// Keys and values shared by the ranks of one job: their rendezvous. Thread-safe. Values are small.
class Store {
 public:
  virtual ~Store() = default;
  /// Sets or replaces the value of `key`.
  virtual void set(const std::string& key, std::string_view value) = 0;
  /// Waits until `key` exists. Throws Error{timeout} that names the key after `timeout_seconds`.
  virtual std::string get(const std::string& key, double timeout_seconds) = 0;
  struct Member {
    int rank = 0;
    int size = 1;
  };
  /// Sets this rank's value under `key`, waits until all `size` ranks have set theirs, and returns
  /// them by rank. One request per rank, however many ranks there are. Throws Error{timeout} that
  /// names the key.
  virtual std::vector<std::string> gather(const std::string& key,
                                          Member member,
                                          std::string_view value,
                                          double timeout_seconds) = 0;
  /// Adds to a counter that starts at 0 and returns the new value. Throws Error{timeout} if the
  /// store does not answer within `timeout_seconds`.
  virtual std::int64_t add(const std::string& key, std::int64_t delta, double timeout_seconds) = 0;
};

}  // namespace dstrain::comm
