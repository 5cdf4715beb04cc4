#include "tests/comm/memory_store.h"

#include <chrono>

#include "runtime/base/error.h"
#include "runtime/comm/packed_texts.h"
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
    fail(ErrorCode::timeout, "no rank set \"{}\" within {:g} s", key, timeout_seconds);
  }
  return values_[key];
}

std::vector<std::string> MemoryStore::gather(const std::string& key,
                                             Member member,
                                             std::string_view value,
                                             double timeout_seconds) {
  {
    const std::lock_guard lock(mutex_);
    comm::GatheredValues& values = gathered_[key];
    if (values.take(comm::gather_value(member.rank, member.size, value))) {
      values_[key] = std::move(values.packed);
      gathered_.erase(key);
      changed_.notify_all();
    }
  }
  return comm::unpack_texts(get(key, timeout_seconds), member.size);
}

std::int64_t MemoryStore::add(const std::string& key,
                              std::int64_t delta,
                              double /*timeout_seconds*/) {
  std::int64_t sum = 0;
  {
    const std::lock_guard lock(mutex_);
    sum = comm::add_to_counter(values_[key], delta);
  }
  changed_.notify_all();
  return sum;
}

}  // namespace dstrain::test
