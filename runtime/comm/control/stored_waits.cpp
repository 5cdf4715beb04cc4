#include "runtime/comm/control/stored_waits.h"

#include <chrono>
#include <thread>

namespace dstrain::comm {
namespace {

constexpr double question_seconds = 1;
/// How long a rank that gives up waits for the others to report that they wait too.
constexpr std::chrono::seconds linger{1};
/// How long a rank that fails waits for rank 0 to answer.
constexpr double answer_seconds = 2;

}  // namespace

StoredWaits::StoredWaits(Store& store, std::string name, Store::Member member)
    : store_(store), name_(std::move(name)), member_(member) {}

void StoredWaits::begin() {
  ++operation_;
  next_look_.reset();
}

std::optional<GroupFailure> StoredWaits::look() {
  if (next_look_ && !next_look_->passed()) return std::nullopt;
  const bool first = !next_look_;
  next_look_ = Deadline::after(question_seconds);
  if (first) return std::nullopt;
  try {
    say_that_this_rank_waits();
    return told();
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<int> StoredWaits::missing() {
  std::vector<int> missing;
  try {
    say_that_this_rank_waits();
    std::this_thread::sleep_for(linger);
    for (int rank = 0; rank < member_.size; ++rank) {
      const bool waits =
          rank == member_.rank || store_.add(key_of(rank), 0, answer_seconds) >= operation_;
      if (!waits) missing.push_back(rank);
    }
  } catch (const Error&) {
    missing.clear();
  }
  return missing;
}

void StoredWaits::tell(const GroupFailure& failure) noexcept {
  try {
    if (store_.add(key("failures"), 1, answer_seconds) != 1) return;
    store_.set(key("failure"), static_cast<char>(failure.code) + failure.why);
    store_.add(key("told"), 1, answer_seconds);
  } catch (const std::exception&) {  // ranks that are connected with this one learn of it otherwise
  }
}

std::optional<GroupFailure> StoredWaits::told() const {
  if (store_.add(key("told"), 0, answer_seconds) == 0) return std::nullopt;
  const std::string failure = store_.get(key("failure"), answer_seconds);
  return GroupFailure{static_cast<ErrorCode>(failure.at(0)), failure.substr(1)};
}

void StoredWaits::say_that_this_rank_waits() {
  if (said_ == operation_) return;
  store_.add(key_of(member_.rank), operation_ - said_, answer_seconds);
  said_ = operation_;
}

std::string StoredWaits::key(const char* what) const {
  return name_ + "/" + what;
}

std::string StoredWaits::key_of(int rank) const {
  return name_ + "/waits/" + std::to_string(rank);
}

}  // namespace dstrain::comm
