#include "launcher/hosts/ssh/connect_timeout.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <exception>
#include <memory>
#include <utility>

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include "launcher/process/pipes.h"
#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t stack_bytes = 1U << 20;  // untouched pages cost nothing
constexpr double slice_seconds = 1;            // of a wait
constexpr double last_chance_seconds = 0.3;    // for a thread that notices by itself

/// State that run_apart's two threads share; the last one frees it.
struct Apart {
  std::function<void()> body;
  std::exception_ptr failure;
  std::atomic<bool> has_run =
      false;  ///< then the other thread owns `failure`; `done` only wakes it
  UniqueFd done{eventfd(0, EFD_CLOEXEC)};

  void run() {
    try {
      body();
    } catch (...) {
      failure = std::current_exception();
    }
    body = nullptr;
    has_run.store(true, std::memory_order_release);
    eventfd_write(done.get(), 1);
  }
};

void* run_thread(void* body) {
  const std::unique_ptr<std::function<void()>> owned(static_cast<std::function<void()>*>(body));
  (*owned)();
  return nullptr;
}

/// Waits for one of two descriptors; 0 when time is up, else which of them is ready.
int wait_for_either(pollfd first, int second, Deadline& deadline) {
  std::array<pollfd, 2> fds{{first, {second, POLLIN, 0}}};
  for (int ready = 0; ready <= 0;) {
    const int most_ms = deadline.at_most(slice_seconds).remaining_ms();
    deadline.slice(slice_seconds, [&] { ready = poll(fds.data(), fds.size(), most_ms); });
    if (ready < 0 && errno != EINTR) fail_errno(errno, "poll");
    if (ready == 0 && deadline.passed()) return 0;
  }
  if (fds[0].revents != 0) return 1;
  return fds[1].revents != 0 ? 2 : 0;
}

[[noreturn]] void give_up(int waited, const ConnectTimeout& timeout, std::string_view what) {
  if (waited != 0) fail(ErrorCode::aborted, "the connection was abandoned");
  fail(ErrorCode::timeout, "no answer within {} s while waiting for {}", timeout.seconds, what);
}

}  // namespace

void wait_for_session(ssh_session session, const ConnectTimeout& timeout, std::string_view what) {
  const int fd = ssh_get_fd(session);
  if (fd < 0) return;  // it has failed: the next call reports how
  make_non_blocking(fd);
  const bool writes = (ssh_get_poll_flags(session) & SSH_WRITE_PENDING) != 0;
  const int events = POLLIN | (writes ? POLLOUT : 0);
  const int ready =
      wait_for_either({fd, static_cast<short>(events), 0}, timeout.stop_fd, timeout.deadline);
  // A peer that keeps sending must not hold us up either.
  if (ready == 1 && !timeout.deadline.passed()) return;
  give_up(ready == 1 ? 0 : ready, timeout, what);
}

void rest(const ConnectTimeout& timeout, double seconds, std::string_view what) {
  Deadline end = timeout.deadline.at_most(seconds);
  const int ready = wait_for_either({-1, 0, 0}, timeout.stop_fd, end);
  timeout.deadline.put_off(end.standstill_seconds());
  if (ready == 2) give_up(2, timeout, what);
  if (timeout.deadline.passed()) give_up(0, timeout, what);
}

void run_apart(const ConnectTimeout& timeout, std::string_view what, std::function<void()> body) {
  const auto apart = std::make_shared<Apart>();
  apart->body = std::move(body);
  start_thread([apart] { apart->run(); });
  const pollfd done{apart->done.get(), POLLIN, 0};
  const int ready = wait_for_either(done, timeout.stop_fd, timeout.deadline);
  Deadline last_chance = Deadline::after(last_chance_seconds);
  if (ready != 1) wait_for_either(done, -1, last_chance);
  if (!apart->has_run.load(std::memory_order_acquire)) give_up(ready, timeout, what);
  const std::exception_ptr failure = std::exchange(apart->failure, nullptr);
  if (failure) std::rethrow_exception(failure);
}

void start_thread(std::function<void()> body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto owned = std::make_unique<std::function<void()>>(std::move(body));
  pthread_t thread{};
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, &attributes, run_thread, owned.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (error != 0) fail_errno(error, "start a thread for a connection");
  (void)owned.release();  // the thread's now
}

}  // namespace dstrain::launcher
