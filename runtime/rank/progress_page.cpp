#include "runtime/rank/progress_page.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/os/fd_io.h"

namespace dstrain {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

std::int32_t this_thread() {
  thread_local const std::int32_t id = gettid();
  return id;
}

template <std::size_t size>
void set_text(std::array<char, size>& target, std::string_view text) {
  target.fill('\0');
  std::copy_n(text.begin(), std::min(text.size(), size), target.begin());
}

bool is_page(int fd) {
  struct stat file {};
  return fcntl(fd, F_GET_SEALS) == seals && fstat(fd, &file) == 0 && file.st_size == page_bytes;
}

}  // namespace

void ProgressPage::Unmap::operator()(Layout* layout) const noexcept {
  munmap(layout, page_bytes);
}

UniqueFd ProgressPage::make_memory() {
  UniqueFd memory(memfd_create("dstrain-progress", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || ftruncate(memory.get(), page_bytes) != 0 ||
      fcntl(memory.get(), F_ADD_SEALS, seals) != 0) {
    fail_errno(errno, "make the memory in which a rank publishes its progress");
  }
  return memory;
}

Result<ProgressPage> ProgressPage::map(int fd) {
  static_assert(sizeof(Layout) <= page_bytes);
  if (!is_page(fd)) return Failure{"not memory for the progress of a rank"};
  void* const mapped = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return Failure{std::strerror(errno)};
  return ProgressPage(static_cast<Layout*>(mapped));
}

ProgressPage::ProgressPage() : ProgressPage(static_cast<Layout*>(nullptr)) {
  const UniqueFd memory = make_memory();
  Result<ProgressPage> page = map(memory.get());
  if (!page.ok()) fail(ErrorCode::io, "map the page of a rank's progress: {}", page.error());
  *this = std::move(page.value());
}

ProgressPage ProgressPage::from_environment() {
  const char* const text = std::getenv(env::progress_fd);
  const auto fd = parse_number<int>(text != nullptr ? text : "");
  if (!fd || !is_page(*fd)) return {};
  const UniqueFd memory(*fd);  // from here on, neither we nor the rank's own children need it
  Result<ProgressPage> page = map(memory.get());
  return page.ok() ? std::move(page.value()) : ProgressPage();
}

void ProgressPage::publish_compute() {
  compute_.since_ns = now_ns();
  compute_.thread = this_thread();
  ++compute_.changes;
  layout_->compute.write(compute_);
}

void ProgressPage::enter(RunPhase phase) {
  compute_.phase = phase;
  compute_.work = Work::none;
  compute_.unit = -1;
  publish_compute();
}

void ProgressPage::begin_step(std::int64_t step) {
  compute_.step = step;
  begin_work(Work::vote);
}

void ProgressPage::begin_work(Work work, int unit) {
  compute_.work = work;
  compute_.unit = unit;
  publish_compute();
}

void ProgressPage::publish_collective() {
  collective_.since_ns = now_ns();
  collective_.thread = this_thread();
  layout_->collective.write(collective_);
}

void ProgressPage::begin_operation(const Operation& operation) {
  const std::lock_guard lock(*collective_mutex_);
  ++collective_.sequence;
  collective_.inside = 1;
  collective_.numel = operation.numel;
  collective_.peer = operation.peer;
  set_text(collective_.operation, operation.name);
  set_text(collective_.dtype, operation.dtype);
  publish_collective();
}

void ProgressPage::end_operation() {
  const std::lock_guard lock(*collective_mutex_);
  collective_.inside = 0;
  publish_collective();
}

void ProgressPage::publish_save() {
  save_.since_ns = now_ns();
  save_.thread = this_thread();
  ++save_.changes;
  layout_->save.write(save_);
}

void ProgressPage::begin_save() {
  save_.busy = 1;
  publish_save();
}

void ProgressPage::advance_save() {
  publish_save();
}

void ProgressPage::end_save() {
  save_.busy = 0;
  publish_save();
}

std::optional<RankProgress> ProgressPage::read() const {
  const auto compute = layout_->compute.read();
  const auto collective = layout_->collective.read();
  const auto save = layout_->save.read();
  if (!compute || !collective || !save) return std::nullopt;
  return RankProgress{*compute, *collective, *save};
}

}  // namespace dstrain
