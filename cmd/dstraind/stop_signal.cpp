#include "cmd/dstraind/stop_signal.h"

#include <atomic>
#include <csignal>

namespace dstrain::cmd {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<int> caught{0};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    caught.store(signal);
  };
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

int stop_signal() {
  return caught.load();
}

}  // namespace dstrain::cmd
