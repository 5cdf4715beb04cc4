#include "launcher/hosts/ssh/login_turn.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace dstrain::launcher {
namespace {

constexpr int logins_max = 8;
constexpr double look_seconds = 0.05;  // between two looks whether somebody gives up

/// Of each first hop, how many log in there. Never destroyed: threads may be left behind.
struct Logins {
  std::mutex mutex;
  std::condition_variable ended;
  std::map<std::string, int> at;
};

Logins& logins() {
  static auto* const all = new Logins;
  return *all;
}

}  // namespace

LoginTurn::LoginTurn(std::string first_hop, const ConnectTimeout& timeout)
    : first_hop_(std::move(first_hop)) {
  Logins& all = logins();
  std::unique_lock lock(all.mutex);
  while (all.at[first_hop_] >= logins_max) {
    all.ended.wait_for(lock, std::chrono::duration<double>(look_seconds));
    rest(timeout, 0, "others to log in");
  }
  ++all.at[first_hop_];
}

LoginTurn::~LoginTurn() {
  Logins& all = logins();
  {
    const std::scoped_lock lock(all.mutex);
    if (--all.at[first_hop_] == 0) all.at.erase(first_hop_);
  }
  all.ended.notify_all();
}

}  // namespace dstrain::launcher
