#include "launcher/hosts/ssh/login_turn.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace dstrain::launcher {
namespace {

constexpr int logins_max = 8;
constexpr double look_seconds = 0.05;  // between two checks whether to give up

}  // namespace

/// How many connections log in at each first hop.
struct Logins {
  std::mutex mutex;
  std::condition_variable ended;
  std::map<std::string, int> at;

  static std::shared_ptr<Logins> of_process() {
    static const auto all = std::make_shared<Logins>();
    return all;
  }
};

LoginTurn::LoginTurn(std::string first_hop, const ConnectTimeout& timeout)
    : all_(Logins::of_process()), first_hop_(std::move(first_hop)) {
  std::unique_lock lock(all_->mutex);
  while (all_->at[first_hop_] >= logins_max) {
    timeout.deadline.slice(look_seconds, [&] {
      all_->ended.wait_for(lock, std::chrono::duration<double>(look_seconds));
    });
    rest(timeout, 0, "others to log in");
  }
  ++all_->at[first_hop_];
}

LoginTurn::~LoginTurn() {
  {
    const std::scoped_lock lock(all_->mutex);
    if (--all_->at[first_hop_] == 0) all_->at.erase(first_hop_);
  }
  all_->ended.notify_all();
}

}  // namespace dstrain::launcher
