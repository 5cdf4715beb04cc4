#pragma once
#include <condition_variable>
#include <map>
#include <mutex>

#include "runtime/comm/store.h"
#include "runtime/comm/store/protocol.h"

namespace dstrain::test {

/// A store for threads of one process.
class MemoryStore : public comm::Store {
 public:
  void set(const std::string& key, std::string_view value) override;
  std::string get(const std::string& key, double timeout_seconds) override;
  std::vector<std::string> gather(const std::string& key,
                                  Member member,
                                  std::string_view value,
                                  double timeout_seconds) override;
  std::int64_t add(const std::string& key, std::int64_t delta, double timeout_seconds) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, comm::GatheredValues> gathered_;
};

}  // namespace dstrain::test
