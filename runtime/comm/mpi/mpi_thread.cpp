#include "runtime/comm/mpi/mpi_thread.h"

#include <chrono>

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
  std::future<int> code = stay_->entered.get_future();
  if (code.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) return {};
  return code.get();
}

void MpiThread::leave() {
  stay_->over.set_value();
  thread_.join();
}

}  // namespace dstrain::comm
