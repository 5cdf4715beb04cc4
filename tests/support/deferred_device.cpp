#include "tests/support/deferred_device.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include "runtime/base/error.h"
#include "runtime/device/host_point.h"
#include "runtime/tensor/device_access.h"

namespace dstrain::test {
namespace {

std::byte* map(Bytes bytes, int protection) {
  void* const address = ::mmap(nullptr, static_cast<std::size_t>(bytes), protection,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  DSTRAIN_CHECK(address != MAP_FAILED, "mmap of {} bytes", bytes);
  return static_cast<std::byte*>(address);
}

}  // namespace

/// The thread of the device, and what its streams hold.
class DeferredDevice::Core : public std::enable_shared_from_this<Core> {
 public:
  /// What a stream waits for; all but the address is guarded by the core.
  struct Gate {
    bool open = false;
    std::exception_ptr failure;
  };
  struct Step {
    Task run;                    ///< null: waits for the gate
    std::shared_ptr<Gate> gate;  ///< null: waits for nothing
    bool always = false;         ///< after a failure too
    bool dropped = false;        ///< where a wait was left out
  };
  struct Queue {
    std::string name;
    std::string_view last_op = "nothing";
    std::deque<Step> steps{};
    bool busy = false;
    std::exception_ptr failure{};
    [[nodiscard]] bool idle() const { return steps.empty() && !busy; }
    [[nodiscard]] bool runnable() const {
      return !steps.empty() && (steps.front().gate == nullptr || steps.front().gate->open);
    }
  };
  /// A thread of the host that waits for the device.
  struct Waiter {
    Waiter(std::thread::id waiting, std::function<bool()> awaited)
        : thread(waiting), condition(std::move(awaited)) {}
    std::thread::id thread;
    std::function<bool()> condition;
    std::condition_variable met{};
  };

  /// What a wait is for was launched at most so many waits of its name before.
  static constexpr int ring_slots = 2;
  using Clock = std::chrono::steady_clock;
  explicit Core(std::uint64_t seed) : random_(seed) {}

  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    change([this] { stopping_ = true; });
    thread_.join();
  }

  Queue& add_queue(std::string name) {
    const std::lock_guard lock(mutex_);
    return queues_.emplace_back(Queue{.name = std::move(name)});
  }
  void remove_queue(const Queue& queue) {
    const std::lock_guard lock(mutex_);
    queues_.remove_if([&](const Queue& one) { return &one == &queue; });
  }
  void push(Queue& queue, Step step) {
    change([&] { queue.steps.push_back(std::move(step)); });
  }
  void launch(Queue& queue, std::string_view op, Task task) {
    change([&] {
      queue.last_op = op;
      queue.steps.push_back({std::move(task), {}});
    });
  }
  void open(Gate& gate, std::exception_ptr failure) {
    change([&] {
      gate.open = true;
      gate.failure = std::move(failure);
      wake_waiters();
    });
  }
  /// Blocks the calling thread of the host; the device hears that it does.
  template <class Condition>
  void wait_until(const Condition& condition) {
    std::unique_lock lock(mutex_);
    host_calls();
    if (condition()) return;
    const auto waiter = waiters_.emplace(waiters_.end(), std::this_thread::get_id(), condition);
    changed_.notify_one();
    waiter->met.wait(lock, condition);
    waiters_.erase(waiter);
  }
  void note_waits(const Wait& dropped, int late_ms) {
    const std::lock_guard lock(mutex_);
    notes_ = true;
    waits_.clear();
    dropped_ = dropped;
    late_ = std::chrono::milliseconds(late_ms);
    if (dropped.number < ring_slots) hold_for_host(dropped.name);
  }
  std::vector<Wait> end_note() {
    const std::lock_guard lock(mutex_);
    notes_ = false;
    return std::move(waits_);
  }
  /// What all that `queue` was given so far is called in the name of a wait for it.
  [[nodiscard]] std::string describe(const Queue& queue) {
    const std::lock_guard lock(mutex_);
    return fmt::format("{} after {}", queue.name, queue.last_op);
  }
  /// To be asked before each wait for what is `awaited`: of `waiting`, or of the host (null).
  [[nodiscard]] bool drops(Queue* waiting, const Queue* awaited, const std::string& what) {
    const std::lock_guard lock(mutex_);
    host_calls();
    if (!notes_) return false;
    std::string name = fmt::format("{} for {}", waiting == nullptr ? "host" : waiting->name, what);
    const auto number = std::ranges::count(waits_, name, &Wait::name);
    waits_.push_back({std::move(name), static_cast<int>(number)});
    const Wait& wait = waits_.back();
    if (wait.name == dropped_.name && wait.number + ring_slots == dropped_.number) {
      hold_for_host(wait.name);
      if (waiting == nullptr) host_to_come_ = std::this_thread::get_id();
    }
    if (wait != dropped_) return false;
    goes_on_ = waiting;
    if (waiting == nullptr) {
      host_ahead_ = std::this_thread::get_id();
      go_on();
    } else {
      held_ = awaited;
      waiting->steps.push_back({.run = nullptr, .gate = nullptr, .dropped = true});
    }
    changed_.notify_one();
    return true;
  }
  template <class Read>
  auto read(const Read& read) {
    const std::lock_guard lock(mutex_);
    return read();
  }

 private:
  template <class Change>
  void change(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      host_calls();
      change();
    }
    changed_.notify_one();
  }
  /// Wakes each thread of the host whose wait is over, and no other.
  void wake_waiters() {
    for (Waiter& waiter : waiters_) {
      if (waiter.condition()) waiter.met.notify_one();
    }
  }
  /// A thread of the host that went on without a wait has done what came behind it once it has
  /// something to say to the device again.
  void host_calls() {
    if (std::this_thread::get_id() != host_ahead_) return;
    host_ahead_ = {};
    changed_.notify_one();
  }

  /// Of a wait of the host, what it would have waited for is held before the host comes to it, or
  /// it would be a matter of luck who is first: from the wait before which that can have been
  /// launched.
  void hold_for_host(const std::string& wait) {
    for (const Queue& queue : queues_) {
      if (wait.starts_with(fmt::format("host for {} after ", queue.name))) held_ = &queue;
    }
  }
  /// Who would have waited has come to the dropped wait.
  void go_on() {
    held_ = nullptr;
    host_to_come_ = {};
    late_until_ = Clock::now() + late_;
    host_until_ = Clock::now() + std::chrono::seconds(1);
  }
  /// Until when the others stand still: for a while, and as long as a busy machine keeps the thread
  /// of the host that would have waited from going on, within a second.
  [[nodiscard]] Clock::time_point late_until() const {
    return host_ahead_ == std::thread::id() ? late_until_ : std::max(late_until_, host_until_);
  }
  /// After a dropped wait, for a while, only who would have waited goes on; before it, what it
  /// would have waited for is held.
  std::vector<Queue*> runnable() {
    const bool late = Clock::now() < late_until();
    std::vector<Queue*> found;
    for (Queue& queue : queues_) {
      if (queue.runnable() && (!late || &queue == goes_on_) && &queue != held_) {
        found.push_back(&queue);
      }
    }
    return found;
  }
  /// Whether the thread that is to come to the dropped wait is known, and on its way.
  [[nodiscard]] bool host_is_coming() const {
    return host_to_come_ != std::thread::id() &&
           std::ranges::find(waiters_, host_to_come_, &Waiter::thread) == waiters_.end();
  }
  /// What is held takes a step once nothing else has been able to for a while: for a longer one
  /// where the host may be on its way, which a busy machine delays.
  void take_held_step(std::unique_lock<std::mutex>& lock) {
    const bool coming = host_is_coming();
    const auto others = [&] {
      return stopping_ || !runnable().empty() || host_is_coming() != coming;
    };
    const Queue* const held = held_;
    if (changed_.wait_for(lock, coming ? late_ * 2 : late_ / 8, others) || held_ != held) return;
    const auto queue = std::ranges::find(queues_, held, [](const Queue& one) { return &one; });
    if (queue != queues_.end() && queue->runnable()) take_step(*queue, lock);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      while (!stopping_ && runnable().empty()) {
        if (Clock::now() < late_until()) {
          changed_.wait_until(lock, late_until());
        } else if (held_ != nullptr && held_->runnable()) {
          take_held_step(lock);
        } else {
          changed_.wait(lock);
        }
      }
      // A host that waits for another rank of the test does not tell: the device goes on by itself.
      if (random_() % 4 == 0) {
        changed_.wait_for(lock, std::chrono::microseconds(random_() % 500),
                          [this] { return stopping_ || !waiters_.empty(); });
      }
      const std::vector<Queue*> found = runnable();
      if (found.empty() && stopping_) return;
      if (!found.empty()) take_step(*found[random_() % found.size()], lock);
    }
  }

  void take_step(Queue& queue, std::unique_lock<std::mutex>& lock) {
    Step step = std::move(queue.steps.front());
    queue.steps.pop_front();
    if (step.dropped) go_on();
    if (step.gate != nullptr && step.gate->failure && !queue.failure) {
      queue.failure = step.gate->failure;
    }
    if (step.run && (step.always || !queue.failure)) {
      queue.busy = true;
      lock.unlock();
      std::exception_ptr failure;
      try {
        step.run(here_);
      } catch (...) {
        failure = std::current_exception();
      }
      step = {};
      lock.lock();
      queue.busy = false;
      if (failure && !queue.failure) queue.failure = failure;
    }
    wake_waiters();
  }

  std::mutex mutex_;
  std::condition_variable changed_;  ///< the device's thread waits for it
  std::list<Queue> queues_;
  std::list<Waiter> waiters_;  ///< threads of the host that wait for the device
  bool stopping_ = false;
  bool notes_ = false;
  std::vector<Wait> waits_;
  Wait dropped_;
  std::chrono::milliseconds late_{};
  Clock::time_point late_until_{};
  Clock::time_point host_until_{};
  std::thread::id host_ahead_{};
  std::thread::id host_to_come_{};
  const Queue* goes_on_ = nullptr;
  const Queue* held_ = nullptr;
  std::mt19937_64 random_;
  CpuStream here_{CpuStream::Mode::inline_on_caller};  ///< of the device's thread
  std::thread thread_;
};

/// A point in a stream of the device.
class DeferredDevice::Point final : public EventPoint {
 public:
  Point(std::shared_ptr<Core> core, const Core::Queue& queue)
      : core_(std::move(core)), queue_(&queue), name_(core_->describe(queue)) {}
  void wait() override {
    if (core_->drops(nullptr, queue_, name_)) return;
    core_->wait_until([this] { return gate_->open; });
    if (gate_->failure) std::rethrow_exception(gate_->failure);
  }
  [[nodiscard]] const std::shared_ptr<Core::Gate>& gate() const { return gate_; }
  /// Whether the wait of `waiting` for this point is left out.
  [[nodiscard]] bool drops(Core::Queue& waiting) const {
    return core_->drops(&waiting, queue_, name_);
  }
  [[nodiscard]] const Core& core() const { return *core_; }

 private:
  std::shared_ptr<Core> core_;
  const Core::Queue* queue_;
  std::string name_;
  std::shared_ptr<Core::Gate> gate_ = std::make_shared<Core::Gate>();
};

class DeferredDevice::DeferredStream final : public Stream {
 public:
  DeferredStream(DeferredDevice& device, std::string name)
      : Stream({DeviceKind::cuda, 0}),
        device_(device),
        core_(device.core_),
        queue_(core_->add_queue(std::move(name))) {}
  DeferredStream(const DeferredStream&) = delete;
  DeferredStream& operator=(const DeferredStream&) = delete;
  DeferredStream(DeferredStream&&) = delete;
  DeferredStream& operator=(DeferredStream&&) = delete;
  ~DeferredStream() override {
    wait_until_idle();
    core_->remove_queue(queue_);
  }

  [[nodiscard]] DeferredDevice& owner() const { return device_; }
  void launch(std::string_view op, Task task) { core_->launch(queue_, op, std::move(task)); }
  void push_always(Task task) { core_->push(queue_, {std::move(task), {}, true}); }

  void synchronize() override {
    if (core_->drops(nullptr, &queue_, "all of " + core_->describe(queue_))) return;
    wait_until_idle();
    const auto failure =
        core_->read([this] { return std::exchange(queue_.failure, std::exception_ptr()); });
    if (failure) std::rethrow_exception(failure);
  }
  [[nodiscard]] std::exception_ptr failure() const override {
    return core_->read([this] { return queue_.failure; });
  }
  void wait_until_idle() noexcept override {
    core_->wait_until([this] { return queue_.idle(); });
  }

 private:
  std::shared_ptr<EventPoint> record() override {
    auto point = std::make_shared<Point>(core_, queue_);
    push_always([this, gate = point->gate()](CpuStream&) { core_->open(*gate, failure()); });
    return point;
  }
  void wait_for(std::shared_ptr<EventPoint> point) override {
    const auto own = std::dynamic_pointer_cast<Point>(point);
    if (own ? own->drops(queue_) : core_->drops(&queue_, nullptr, "the host")) return;
    if (own) {
      DSTRAIN_CHECK(&own->core() == core_.get(), "a point of another device");
      core_->push(queue_, {nullptr, own->gate()});
      return;
    }
    const auto gate = std::make_shared<Core::Gate>();
    dynamic_cast<HostPoint&>(*point).then(
        [core = core_, gate](std::exception_ptr failed) { core->open(*gate, std::move(failed)); });
    core_->push(queue_, {nullptr, gate});
  }

  DeferredDevice& device_;
  std::shared_ptr<Core> core_;
  Core::Queue& queue_;
};

/// First fit over one range of addresses.
class DeferredDevice::Memory final : public MemoryResource {
 public:
  explicit Memory(Bytes bytes)
      : bytes_(bytes),
        seen_(map(bytes, PROT_NONE)),
        used_(map(bytes, PROT_READ | PROT_WRITE)),
        free_{{0, bytes}} {
    // A fault for each small page would take longer than to fill it.
    ::madvise(used_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory(Memory&&) = delete;
  Memory& operator=(Memory&&) = delete;
  ~Memory() override {
    ::munmap(seen_, static_cast<std::size_t>(bytes_));
    ::munmap(used_, static_cast<std::size_t>(bytes_));
  }

  [[nodiscard]] Device device() const noexcept override { return {DeviceKind::cuda, 0}; }
  std::byte* allocate(Bytes bytes, StreamView /*stream*/) override {
    const Bytes size = round_up(std::max<Bytes>(bytes, 1), 64);
    const std::lock_guard lock(mutex_);
    const auto place =
        std::ranges::find_if(free_, [size](const auto& range) { return range.second >= size; });
    if (place == free_.end()) fail(ErrorCode::out_of_device_memory, "the deferred device is full");
    const auto [begin, room] = *place;
    free_.erase(place);
    if (room > size) free_.emplace(begin + size, room - size);
    poison(begin, size);
    return seen_ + begin;
  }
  void deallocate(std::byte* address, Bytes bytes, StreamView stream) noexcept override {
    const Bytes size = round_up(std::max<Bytes>(bytes, 1), 64);
    stream_of(stream).push_always(
        [this, begin = address - seen_, size](CpuStream&) { free(begin, size); });
  }
  /// The place of `bytes` from `address` on that ops use.
  [[nodiscard]] std::byte* behind(const std::byte* address, Bytes bytes) const {
    const std::ptrdiff_t begin = address - seen_;
    DSTRAIN_CHECK(begin >= 0 && begin + bytes <= bytes_, "not in the deferred device's memory");
    return used_ + begin;
  }

 private:
  void poison(Bytes begin, Bytes size) const {
    std::memset(used_ + begin, 0xFF, static_cast<std::size_t>(size));
  }
  void free(Bytes begin, Bytes size) {
    const std::lock_guard lock(mutex_);
    poison(begin, size);
    auto place = free_.emplace(begin, size).first;
    const auto next = std::next(place);
    if (next != free_.end() && place->first + place->second == next->first) {
      place->second += next->second;
      free_.erase(next);
    }
    if (place == free_.begin()) return;
    const auto before = std::prev(place);
    if (before->first + before->second != place->first) return;
    before->second += place->second;
    free_.erase(place);
  }

  Bytes bytes_;
  std::byte* seen_;
  std::byte* used_;
  std::mutex mutex_;
  std::map<Bytes, Bytes> free_;  ///< size by begin
};

DeferredDevice::DeferredDevice(std::uint64_t seed, Bytes memory)
    : core_(std::make_shared<Core>(seed)), memory_(std::make_unique<Memory>(memory)) {
  core_->start();
}

DeferredDevice::~DeferredDevice() {
  core_->stop();
}

void DeferredDevice::note_waits(const Wait& dropped, int late_ms) {
  core_->note_waits(dropped, late_ms);
}

std::vector<DeferredDevice::Wait> DeferredDevice::end_note() {
  return core_->end_note();
}

MemoryResource& DeferredDevice::memory() {
  return *memory_;
}

std::unique_ptr<Stream> DeferredDevice::make_stream(std::string name) {
  return std::make_unique<DeferredStream>(*this, std::move(name));
}

DeferredDevice::DeferredStream& DeferredDevice::stream_of(StreamView stream) {
  return dynamic_cast<DeferredStream&>(stream.stream());
}

void DeferredDevice::launch(StreamView stream, std::string_view op, Task task) {
  stream_of(stream).launch(op, std::move(task));
}

TensorView DeferredDevice::translated(const TensorView& view, StreamView stream) {
  if (view.empty()) return view;
  DSTRAIN_CHECK(view.device().kind == DeviceKind::cuda, "an op of a device was given host memory");
  /// Of the memory behind, with the rows of `view`.
  struct Behind : TensorView {
    Behind(std::byte* address, const TensorView& like)
        : TensorView(address, like.dtype(), like.shape(), Device{}, like.row_stride()) {}
  };
  return Behind(stream_of(stream).owner().memory_->behind(device_access(view), view.bytes()), view);
}

}  // namespace dstrain::test
