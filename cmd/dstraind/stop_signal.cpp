#include "cmd/dstraind/stop_signal.h"

#include <atomic>
#include <csignal>

namespace dstrain::cmd {
namespace {

// A signal handler reaches nothing but globals.
std::atomic<bool> stop_flag{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) {
    stop_flag.store(true);
  };
  action.sa_flags = SA_RESTART;
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
}

bool stop_requested() {
  return stop_flag.load();
}

}  // namespace dstrain::cmd
