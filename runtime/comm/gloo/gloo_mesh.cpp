#include "runtime/comm/gloo/gloo_mesh.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include "runtime/base/deadline.h"

namespace dstrain::comm {
namespace {

constexpr double join_seconds_min = 5;

/// gloo waits five times as long for a connection as it is told.
std::chrono::milliseconds connect_timeout(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(seconds / 5 * 1e3)));
}

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

/// Writing to a connection that a dead peer has closed would end this process.
void ignore_sigpipe() {
  struct sigaction action {};
  ::sigaction(SIGPIPE, nullptr, &action);
  if (action.sa_handler != SIG_DFL) return;
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

/// gloo's thread starts here and inherits the mask: signals are for the threads of the program.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  BlockedSignals(BlockedSignals&&) = delete;
  BlockedSignals& operator=(BlockedSignals&&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

double join_seconds(const GlooOptions& options) {
  return std::max(options.timeout_seconds, join_seconds_min);
}

std::string words_of(const std::exception& error) {
  const std::string text = error.what();
  const std::size_t end = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return end == std::string::npos ? text : text.substr(end + 2);
}

GlooDevice make_gloo_device(const std::string& address) {
  ignore_sigpipe();
  const BlockedSignals blocked;
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address;
  return gloo::transport::tcp::CreateDevice(attributes);
}

std::shared_ptr<gloo::Context> connect_mesh(Store& store,
                                            const GlooOptions& options,
                                            GlooDevice device) {
  const double seconds = join_seconds(options);
  GlooStore rendezvous(store, {"gloo/" + options.name + "/", Deadline::after(seconds)});
  const auto context = std::make_shared<gloo::rendezvous::Context>(options.rank, options.size);
  context->setTimeout(connect_timeout(seconds));
  context->connectFullMesh(rendezvous, device);
  return context;
}

}  // namespace dstrain::comm
