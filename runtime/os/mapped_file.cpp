#include "runtime/os/mapped_file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <mutex>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/base/exit_status.h"
#include "runtime/base/log.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"

namespace dstrain {
namespace {

struct stat status_of(int fd, const std::string& name) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_errno(errno, "stat of " + name);
  return info;
}

/// For the handler of SIGBUS, which may neither lock nor allocate, to find a file.
struct MappingEntry {
  std::atomic<const MappedFile::Mapping*> mapping = nullptr;
};
/// The handler does not name files beyond these.
std::array<MappingEntry, 256>& mapping_entries() {
  static std::array<MappingEntry, 256> all;
  return all;
}

/// All mapped files of the process.
struct Mappings {
  std::mutex mutex;
  std::list<MappedFile::Mapping*> all;  ///< guarded
};
Mappings& mappings() {
  static Mappings of_process;
  return of_process;
}

}  // namespace

struct MappedFile::Mapping {
  Mapping(std::string name, int fd, Bytes size)
      : path(std::move(name)),
        before(status_of(fd, path)),
        bytes(static_cast<std::size_t>(size)),
        address(::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0)) {
    if (address == MAP_FAILED) fail_errno(errno, "map " + path);
    for (MappingEntry& entry : mapping_entries()) {
      const Mapping* nobody = nullptr;
      if (entry.mapping.compare_exchange_strong(nobody, this)) break;
    }
    const std::lock_guard lock(mappings().mutex);
    mappings().all.push_back(this);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&&) = delete;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    for (MappingEntry& entry : mapping_entries()) {
      const Mapping* own = this;
      entry.mapping.compare_exchange_strong(own, nullptr);
    }
    {
      const std::lock_guard lock(mappings().mutex);
      mappings().all.remove(this);
    }
    ::munmap(address, bytes);
  }

  [[nodiscard]] bool holds(const void* at) const {
    return std::less_equal<>()(address, at) &&
           std::less<>()(at, static_cast<const std::byte*>(address) + bytes);
  }

  /// Throws Error{input}.
  void check() {
    struct stat now {};
    if (::stat(path.c_str(), &now) != 0) return;
    if (now.st_dev != before.st_dev || now.st_ino != before.st_ino) return;
    if (now.st_size < before.st_size) {
      fail(ErrorCode::input, "{}: was cut from {} to {} bytes while it was read", path,
           before.st_size, now.st_size);
    }
    const bool written = now.st_size != before.st_size ||
                         now.st_mtim.tv_sec != before.st_mtim.tv_sec ||
                         now.st_mtim.tv_nsec != before.st_mtim.tv_nsec;
    if (!written || warned) return;
    warned = true;
    log_warning(path +
                ": was written to while it is read; the data read may differ from the file's "
                "current contents");
  }

  std::string path;
  struct stat before;
  std::size_t bytes;
  void* address;
  bool warned = false;  ///< guarded, as the list is
};

namespace {

void write_to_stderr(const char* text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void end_by_shortened_file(int signal, siginfo_t* info, void* /*context*/) {
  for (const MappingEntry& entry : mapping_entries()) {
    const MappedFile::Mapping* const mapping = entry.mapping.load();
    if (mapping == nullptr || !mapping->holds(info->si_addr)) continue;
    write_to_stderr("dstrain: error: ");
    write_to_stderr(mapping->path.c_str());
    write_to_stderr(": was cut short while it was read\n");
    ::_exit(status::failed);
  }
  // The signal has another cause: the access fails again, and ends the process as without us.
  ::signal(signal, SIG_DFL);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const UniqueFd fd = open_regular(path);
  const Bytes bytes = regular_bytes(fd.get(), path.string());
  if (bytes == 0) fail(ErrorCode::input, "{}: the file is empty", path.string());
  mapping_ = std::make_unique<Mapping>(path.string(), fd.get(), bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&& other) noexcept = default;
MappedFile::~MappedFile() = default;

std::span<const std::byte> MappedFile::bytes() const noexcept {
  if (mapping_ == nullptr) return {};
  return {static_cast<const std::byte*>(mapping_->address), mapping_->bytes};
}

void check_mapped_files() {
  const std::lock_guard lock(mappings().mutex);
  for (MappedFile::Mapping* const mapping : mappings().all) mapping->check();
}

void name_shortened_files() {
  struct sigaction action {};
  action.sa_sigaction = end_by_shortened_file;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(SIGBUS, &action, nullptr) != 0) fail_errno(errno, "handler of SIGBUS");
}

}  // namespace dstrain
