#include "runtime/comm/shm/segment.h"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

constexpr Bytes page_bytes = 4 * kibibyte;

/// The first bytes of a segment. Builds whose blocks differ must not meet in one.
struct Header {
  std::uint64_t magic = 0x316d6873'61727473;  // "strashm1"
  std::uint64_t member_bytes = sizeof(MemberBlock);
  std::uint64_t channel_bytes = sizeof(Channel);
  std::int64_t slot = slot_bytes;
  std::int64_t channel_slot = channel_slot_bytes;
  std::int64_t size = 0;
  friend bool operator==(const Header&, const Header&) = default;
};

/// Where the parts begin: header and group, members, channels, slots, channel slots.
struct Layout {
  explicit Layout(std::int64_t size)
      : members(page_bytes),
        channels(members + static_cast<Bytes>(sizeof(MemberBlock)) * size),
        slots(round_up(channels + static_cast<Bytes>(sizeof(Channel)) * size * size, page_bytes)),
        channel_slots(slots + 2 * slot_bytes * size),
        end(channel_slots + 2 * channel_slot_bytes * size * size) {}
  Bytes group = 256;
  Bytes members;
  Bytes channels;
  Bytes slots;
  Bytes channel_slots;
  Bytes end;
};
static_assert(sizeof(Header) <= 256 && 256 + sizeof(GroupBlock) <= page_bytes);
static_assert(page_bytes % alignof(MemberBlock) == 0 && alignof(MemberBlock) == alignof(Channel));

template <class T>
T* at(std::byte* base, Bytes offset) {
  return std::launder(reinterpret_cast<T*>(base + offset));
}

}  // namespace

Segment::Segment(UniqueFd file, int size) : file_(std::move(file)), size_(size) {
  const auto bytes = static_cast<std::size_t>(Layout(size).end);
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED) fail_errno(errno, fmt::format("mmap of {} bytes of memfd", bytes));
  base_ = static_cast<std::byte*>(mapped);
}

Segment::Segment(Segment&& other) noexcept
    : file_(std::move(other.file_)),
      size_(other.size_),
      base_(std::exchange(other.base_, nullptr)) {}

Segment::~Segment() {
  if (base_ != nullptr) ::munmap(base_, static_cast<std::size_t>(Layout(size_).end));
}

Segment Segment::create(int size) {
  UniqueFd file(::memfd_create("dstrain-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail_errno(errno, "memfd_create");
  const Layout layout(size);
  if (::ftruncate(file.get(), layout.end) != 0) fail_errno(errno, "ftruncate of memfd");
  // Sealed, because a peer that shrinks the file would kill the others by SIGBUS.
  if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) {
    fail_errno(errno, "sealing of memfd");
  }
  Segment segment(std::move(file), size);
  std::byte* const base = segment.base_;
  new (base) Header{.size = size};
  new (base + layout.group) GroupBlock;
  std::uninitialized_default_construct_n(reinterpret_cast<MemberBlock*>(base + layout.members),
                                         size);
  std::uninitialized_default_construct_n(reinterpret_cast<Channel*>(base + layout.channels),
                                         size * size);
  return segment;
}

Segment Segment::attach(UniqueFd file, int size) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) fail_errno(errno, "fstat of the shared segment");
  if (info.st_size != Layout(size).end) {
    fail(ErrorCode::comm,
         "the shared segment has {} bytes, {} ranks need {}: do all ranks run the "
         "same version and world size?",
         info.st_size, size, Layout(size).end);
  }
  Segment segment(std::move(file), size);
  if (*at<Header>(segment.base_, 0) != Header{.size = size}) {
    fail(ErrorCode::comm, "the shared segment is of another version: run one version on all ranks");
  }
  return segment;
}

GroupBlock& Segment::group() const {
  return *at<GroupBlock>(base_, Layout(size_).group);
}

std::span<MemberBlock> Segment::members() const {
  return {at<MemberBlock>(base_, Layout(size_).members), static_cast<std::size_t>(size_)};
}

std::byte* Segment::slot(int rank, std::uint32_t round) const {
  return base_ + Layout(size_).slots + (2 * Bytes{rank} + round % 2) * slot_bytes;
}

Channel& Segment::channel(int source, int target) const {
  return at<Channel>(base_, Layout(size_).channels)[source * size_ + target];
}

std::byte* Segment::channel_slot(int source, int target, std::uint32_t piece) const {
  const Bytes index = 2 * (Bytes{source} * size_ + target) + piece % 2;
  return base_ + Layout(size_).channel_slots + index * channel_slot_bytes;
}

}  // namespace dstrain::comm
