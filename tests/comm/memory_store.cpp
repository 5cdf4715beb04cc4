#include "tests/comm/memory_store.h"

#include <chrono>

#include "runtime/base/error.h"
#include "runtime/comm/store/protocol.h"

namespace dstrain::test {

void MemoryStore::set(const std::string& key, std::string_view value) {
  {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
  }
  changed_.notify_all();
}

std::string MemoryStore::get(const std::string& key, double timeout_seconds) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::duration<double>(timeout_seconds),
                         [&] { return values_.contains(key); })) {
    fail(ErrorCode::timeout, "nobody set \"{}\" within {:g} s", key, timeout_seconds);
  }
  return values_[key];
}

std::int64_t MemoryStore::add(const std::string& key, std::int64_t delta) {
  std::int64_t sum = 0;
  {
    const std::lock_guard lock(mutex_);
    sum = comm::add_to_counter(values_[key], delta);
  }
  changed_.notify_all();
  return sum;
}

}  // namespace dstrain::test
