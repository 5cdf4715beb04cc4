#include "runtime/comm/mpi/mpi_thread.h"

#include <algorithm>
#include <chrono>

#include "runtime/base/deadline.h"

namespace dstrain::comm {

MpiThread::MpiThread(StartFunction start)
    : thread_([stay = stay_, start] {
        const int code = start(&stay->api);
        stay->entered.set_value(code);
        if (code != 0) return;
        stay->over.get_future().wait();
        stay->api.finish();
      }) {}

MpiThread::~MpiThread() {
  if (thread_.joinable()) thread_.detach();
}

std::optional<int> MpiThread::wait_until_entered(double seconds) {
  constexpr std::chrono::duration<double> slice{1};
  std::future<int> code = stay_->entered.get_future();
  Deadline deadline = Deadline::after(seconds);
  const auto has_entered = [&] {
    const std::chrono::duration<double> left{deadline.remaining_seconds()};
    return code.wait_for(std::min(slice, left)) == std::future_status::ready;
  };
  while (!has_entered()) {
    deadline.skip_standstill(slice.count());
    if (deadline.passed()) return {};
  }
  return code.get();
}

void MpiThread::leave() {
  stay_->over.set_value();
  thread_.join();
}

}  // namespace dstrain::comm
