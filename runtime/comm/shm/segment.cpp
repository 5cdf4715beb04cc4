#include "runtime/comm/shm/segment.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/log.h"

namespace dstrain::comm {
namespace {

constexpr Bytes page_bytes = 4 * kibibyte;
constexpr Bytes huge_page_bytes = 2 * mebibyte;

/// The first bytes of a segment. Builds with different blocks must not share one.
struct Header {
  std::uint64_t magic = 0x336d6873'61727473;  // "strashm3"
  std::uint64_t member_bytes = sizeof(MemberBlock);
  std::uint64_t channel_bytes = sizeof(Channel);
  std::int64_t slot = slot_bytes;
  std::int64_t channel_slot = channel_slot_bytes;
  std::int64_t control_slot = control_slot_bytes;
  std::int64_t size = 0;
  std::int64_t heap = 0;
  friend bool operator==(const Header&, const Header&) = default;
};

/// The offsets of the parts: header and groups, members, those for control, shared_tensors,
/// channels, slots, channel slots, control slots, heaps.
struct Layout {
  Layout(std::int64_t size, Bytes heap_bytes)
      : members(page_bytes),
        control_members(members + static_cast<Bytes>(sizeof(MemberBlock)) * size),
        shared_tensors(control_members + static_cast<Bytes>(sizeof(MemberBlock)) * size),
        channels(shared_tensors + static_cast<Bytes>(sizeof(SharedTensor)) * size),
        slots(round_up(channels + static_cast<Bytes>(sizeof(Channel)) * size * size, page_bytes)),
        channel_slots(slots + 2 * slot_bytes * size),
        control_slots(channel_slots + 2 * channel_slot_bytes * size * size),
        heaps(round_up(control_slots + 2 * control_slot_bytes * size, huge_page_bytes)),
        end(heaps + heap_bytes * size) {}
  Bytes group = 256;
  Bytes control_group = group + static_cast<Bytes>(sizeof(GroupBlock));
  Bytes members;
  Bytes control_members;
  Bytes shared_tensors;
  Bytes channels;
  Bytes slots;
  Bytes channel_slots;
  Bytes control_slots;
  Bytes heaps;
  Bytes end;
};
static_assert(sizeof(Header) <= 256 && 256 + 2 * sizeof(GroupBlock) <= page_bytes);
static_assert(page_bytes % alignof(MemberBlock) == 0 && alignof(MemberBlock) == alignof(Channel) &&
              alignof(MemberBlock) == alignof(SharedTensor));

template <class T>
T* at(std::byte* base, Bytes offset) {
  return std::launder(reinterpret_cast<T*>(base + offset));
}

/// Maps the file at a multiple of 2 MiB, so that the heaps can have large pages.
std::byte* map_file(int file, Bytes file_bytes) {
  const auto bytes = static_cast<std::size_t>(file_bytes);
  constexpr auto huge = static_cast<std::size_t>(huge_page_bytes);
  void* const reserved =
      ::mmap(nullptr, bytes + huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) fail_errno(errno, fmt::format("mmap of {} bytes", bytes + huge));
  auto* const begin = static_cast<std::byte*>(reserved);
  const std::size_t skipped = huge - reinterpret_cast<std::uintptr_t>(begin) % huge;
  void* const mapped =
      ::mmap(begin + skipped, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  const int error = errno;
  if (mapped == MAP_FAILED) {
    ::munmap(reserved, bytes + huge);
    fail_errno(error, fmt::format("mmap of {} bytes of memfd", bytes));
  }
  ::munmap(begin, skipped);
  if (skipped < huge) ::munmap(begin + skipped + bytes, huge - skipped);
  return static_cast<std::byte*>(mapped);
}

/// Returns a limit of this process; the largest number if there is none.
Bytes limit_of(decltype(RLIMIT_AS) resource) {
  constexpr auto most = std::numeric_limits<Bytes>::max();
  rlimit limit{};
  const bool known = ::getrlimit(resource, &limit) == 0 && limit.rlim_cur < rlim_t{most};
  return known ? static_cast<Bytes>(limit.rlim_cur) : most;
}

}  // namespace

Bytes default_heap_bytes(int size) {
  constexpr Bytes address_space = Bytes{32} * 1024 * gibibyte;  // a quarter of that of x86-64
  const Bytes machine = Bytes{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  const Bytes for_all =
      std::min({address_space, limit_of(RLIMIT_AS) / 4, limit_of(RLIMIT_FSIZE) / 4});
  return std::min(machine, for_all / size) / huge_page_bytes * huge_page_bytes;
}

Segment::Segment(UniqueFd file, int size, Bytes heap_bytes)
    : file_(std::move(file)),
      size_(size),
      heap_bytes_(heap_bytes),
      base_(map_file(file_.get(), Layout(size, heap_bytes).end)),
      undumped_error_(leave_out_of_dumps()) {}

/// Excludes the segment from core files: they would hold the heaps of all ranks, and the kernel
/// would allocate memory for each page. Returns an errno, or 0.
int Segment::leave_out_of_dumps() const {
  const Layout layout(size_, heap_bytes_);
  const auto bytes = static_cast<std::size_t>(layout.end - layout.heaps);
  const bool done = bytes == 0 || ::madvise(base_ + layout.heaps, bytes, MADV_DONTDUMP) == 0;
  return done ? 0 : errno;
}

Segment::Segment(Segment&& other) noexcept
    : file_(std::move(other.file_)),
      size_(other.size_),
      heap_bytes_(other.heap_bytes_),
      base_(std::exchange(other.base_, nullptr)),
      undumped_error_(other.undumped_error_) {}

Segment::~Segment() {
  if (base_ == nullptr) return;
  ::munmap(base_, static_cast<std::size_t>(Layout(size_, heap_bytes_).end));
}

Segment Segment::create(int size, Bytes heap_bytes) {
  DSTRAIN_CHECK(heap_bytes % huge_page_bytes == 0, "a heap of {} bytes", heap_bytes);
  UniqueFd file(::memfd_create("dstrain-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail_errno(errno, "memfd_create");
  const Layout layout(size, heap_bytes);
  if (::ftruncate(file.get(), layout.end) != 0) fail_errno(errno, "ftruncate of memfd");
  // Sealed, because a peer that shrinks the file would kill the others with SIGBUS.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    fail_errno(errno, "sealing of memfd");
  }
  Segment segment(std::move(file), size, heap_bytes);
  if (segment.undumped_error_ != 0) {  // only this rank of the node reports it
    log_warning(
        fmt::format("madvise(MADV_DONTDUMP) of the shared heaps: {}; a core file of a rank "
                    "would hold the heaps of all: ulimit -c 0 prevents it",
                    std::generic_category().message(segment.undumped_error_)));
  }
  std::byte* const base = segment.base_;
  new (base) Header{.size = size, .heap = heap_bytes};
  for (const Bytes group : {layout.group, layout.control_group}) new (base + group) GroupBlock;
  for (const Bytes members : {layout.members, layout.control_members}) {
    std::uninitialized_default_construct_n(reinterpret_cast<MemberBlock*>(base + members), size);
  }
  std::uninitialized_default_construct_n(
      reinterpret_cast<SharedTensor*>(base + layout.shared_tensors), size);
  std::uninitialized_default_construct_n(reinterpret_cast<Channel*>(base + layout.channels),
                                         size * size);
  return segment;
}

Segment Segment::attach(UniqueFd file, int size) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail_errno(errno, "fstat of the shared segment");
  const Bytes fixed = Layout(size, 0).end;
  const Bytes heap_bytes = (info.st_size - fixed) / size;
  if (heap_bytes < 0 || info.st_size != Layout(size, heap_bytes).end) {
    fail(ErrorCode::comm,
         "the shared segment has {} bytes, which {} ranks cannot share out: do all ranks run the "
         "same version and world size?",
         info.st_size, size);
  }
  Segment segment(std::move(file), size, heap_bytes);
  if (*at<Header>(segment.base_, 0) != Header{.size = size, .heap = heap_bytes}) {
    fail(ErrorCode::comm, "the shared segment is of another version: run one version on all ranks");
  }
  return segment;
}

GroupBlock& Segment::group() const {
  return *at<GroupBlock>(base_, Layout(size_, heap_bytes_).group);
}

std::span<MemberBlock> Segment::members() const {
  return {at<MemberBlock>(base_, Layout(size_, heap_bytes_).members),
          static_cast<std::size_t>(size_)};
}

std::byte* Segment::slot(int rank, std::uint32_t round) const {
  return base_ + Layout(size_, heap_bytes_).slots + (2 * Bytes{rank} + round % 2) * slot_bytes;
}

Channel& Segment::channel(int source, int target) const {
  return at<Channel>(base_, Layout(size_, heap_bytes_).channels)[source * size_ + target];
}

std::byte* Segment::channel_slot(int source, int target, std::uint32_t piece) const {
  const Bytes index = 2 * (Bytes{source} * size_ + target) + piece % 2;
  return base_ + Layout(size_, heap_bytes_).channel_slots + index * channel_slot_bytes;
}

SharedTensor& Segment::shared_tensor(int rank) const {
  return at<SharedTensor>(base_, Layout(size_, heap_bytes_).shared_tensors)[rank];
}

std::span<std::byte> Segment::heap(int rank) const {
  return {base_ + Layout(size_, heap_bytes_).heaps + rank * heap_bytes_,
          static_cast<std::size_t>(heap_bytes_)};
}

GroupBlock& Segment::control_group() const {
  return *at<GroupBlock>(base_, Layout(size_, heap_bytes_).control_group);
}

std::span<MemberBlock> Segment::control_members() const {
  return {at<MemberBlock>(base_, Layout(size_, heap_bytes_).control_members),
          static_cast<std::size_t>(size_)};
}

std::byte* Segment::control_slot(int rank, std::uint32_t round) const {
  return base_ + Layout(size_, heap_bytes_).control_slots +
         (2 * Bytes{rank} + round % 2) * control_slot_bytes;
}

}  // namespace dstrain::comm
