#pragma once
#include <gloo/rendezvous/store.h>

#include "runtime/base/deadline.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// Our store as gloo sees it, for one group: gloo's keys are ranks.
class GlooStore final : public gloo::rendezvous::Store {
 public:
  struct Options {
    std::string prefix;
    Deadline deadline;
  };
  GlooStore(comm::Store& store, Options options) : store_(store), options_(std::move(options)) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set(options_.prefix + key, {data.data(), data.size()});
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value =
        store_.get(options_.prefix + key, options_.deadline.remaining_seconds());
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& /*timeout*/) override {
    wait(keys);
  }

 private:
  comm::Store& store_;
  Options options_;
};

}  // namespace dstrain::comm
