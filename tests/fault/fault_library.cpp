// Preloaded into the programs under test: makes the n-th call of a kind on a file of a checkpoint
// fail, and writes down which calls there are.
//
//   DSTRAIN_FAULT=write:3:28   the third write fails with errno 28; "short": it writes half;
//                              "kill": the process dies before it; write:3+:28: and all after it;
//                              "spin": it never returns, computing; "hang": nor, asleep; "late": it
//                              waits until somebody writes to the FIFO that DSTRAIN_FAULT_GATE
//                              names; "slow": it takes 0.15 s. Of "send" the message counts as the
//                              path, of "getaddrinfo" the host, which fails with that code of its
//                              own
//   DSTRAIN_FAULT_FILES=PART   of files with this in their paths, in place of "checkpoint-"
//   DSTRAIN_FAULT_DIRECTORIES=1   of these only of directories
//   DSTRAIN_FAULT_RANK=1       only on that rank
//   DSTRAIN_FAULT_LOG=FILE     appends each call, by rank, and its path, or both of a rename:
//                              "1 write<tab>PATH"; and "1 struck<tab>PATH" before one that never
//                              returns
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

struct Fault {
  std::string call;
  long number = 0;  ///< from 1; 0: none
  bool stays = false;
  std::string what;
};

const Fault& fault() {
  static const Fault wanted = [] {
    Fault read;
    const char* const text = std::getenv("DSTRAIN_FAULT");
    if (text == nullptr) return read;
    const std::string all = text;
    const std::size_t first = all.find(':');
    const std::size_t second = all.find(':', first + 1);
    read.call = all.substr(0, first);
    read.number = std::atol(all.c_str() + first + 1);
    read.stays = all[second - 1] == '+';
    read.what = all.substr(second + 1);
    return read;
  }();
  return wanted;
}

template <class Function>
Function next(Function /*like*/, const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_rank() {
  static const bool is = [] {
    const char* const rank = std::getenv("RANK");
    const char* const wanted = std::getenv("DSTRAIN_FAULT_RANK");
    return rank != nullptr && (wanted == nullptr || std::strcmp(rank, wanted) == 0);
  }();
  return is;
}

std::string path_of(const char* path) {
  return path != nullptr ? path : "";
}

std::string path_of(const std::string& message) {
  return message;
}

/// Empty for what is no file.
std::string path_of(int fd) {
  char path[4096] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return ::readlink(link.c_str(), path, sizeof(path) - 1) > 0 ? path : "";
}

/// Whether a call on this file counts.
bool is_meant(const std::string& path) {
  static const char* const files = std::getenv("DSTRAIN_FAULT_FILES");
  static const bool only_directories = std::getenv("DSTRAIN_FAULT_DIRECTORIES") != nullptr;
  if (path.find(files != nullptr ? files : "checkpoint-") == std::string::npos) return false;
  struct stat info {};
  return !only_directories || (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode));
}

void write_down(const char* call, const std::string& paths) {
  const char* const log = std::getenv("DSTRAIN_FAULT_LOG");
  if (log == nullptr) return;
  const std::string line = std::string(std::getenv("RANK")) + " " + call + "\t" + paths + "\n";
  const auto real_open = next(&::open, "open");
  const auto real_write = next(&::write, "write");
  const int file = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (real_write(file, line.data(), line.size()) < 0) std::perror("fault library");
  ::close(file);
}

void spin_for_ever() {
  for (std::atomic<long> turns{0};; ++turns) continue;
}

void wait_at_gate() {
  const int gate = next(&::open, "open")(std::getenv("DSTRAIN_FAULT_GATE"), O_RDONLY | O_CLOEXEC);
  ::close(gate);
}

enum class Outcome { real, failed, cut };

/// What becomes of a call. Sets errno when it fails.
template <class Path>
Outcome outcome(const char* call, Path path, const char* target = nullptr) {
  static std::atomic<long> calls{0};
  if (!is_rank()) return Outcome::real;
  const std::string meant_path = path_of(path);
  if (!is_meant(meant_path)) return Outcome::real;
  write_down(call, target != nullptr ? meant_path + "\t" + target : meant_path);
  if (fault().number == 0 || fault().call != call) return Outcome::real;
  const long number = ++calls;
  const bool meant = fault().stays ? number >= fault().number : number == fault().number;
  if (!meant) return Outcome::real;
  if (fault().what == "kill") ::raise(SIGKILL);
  if (fault().what == "spin" || fault().what == "hang") write_down("struck", meant_path);
  if (fault().what == "spin") spin_for_ever();
  while (fault().what == "hang") ::pause();
  if (fault().what == "late") {
    wait_at_gate();
    return Outcome::real;
  }
  if (fault().what == "slow") {
    const timespec slow{0, 150'000'000};
    ::nanosleep(&slow, nullptr);
    return Outcome::real;
  }
  if (fault().what == "short") return Outcome::cut;
  errno = std::atoi(fault().what.c_str());
  return Outcome::failed;
}

/// -1 or what `real` returns.
template <class Path, class Real>
int guarded(const char* call, Path path, Real&& real, const char* target = nullptr) {
  return outcome(call, path, target) != Outcome::real ? -1 : real();
}

/// Half of a transfer; whole blocks of what may be I/O past the cache.
std::size_t half(std::size_t size) {
  constexpr std::size_t block = 4096;
  return size % block == 0 ? (size / block + 1) / 2 * block : (size + 1) / 2;
}

template <class Real>
ssize_t guarded_transfer(const char* call, int fd, std::size_t size, Real&& real) {
  const Outcome now = outcome(call, fd);
  if (now == Outcome::failed) return -1;
  return real(now == Outcome::cut ? half(size) : size);
}

template <class Real>
int guarded_reserve(int fd, Real&& real) {
  return outcome("reserve", fd) != Outcome::real ? errno : real();
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

#define DSTRAIN_OPEN(name)                                                                 \
  int name(const char* path, int flags, ...) {                                             \
    va_list arguments;                                                                     \
    va_start(arguments, flags);                                                            \
    const mode_t mode = mode_of(flags, arguments);                                         \
    va_end(arguments);                                                                     \
    return guarded("open", path, [=] { return next(&::open, #name)(path, flags, mode); }); \
  }
DSTRAIN_OPEN(open)
DSTRAIN_OPEN(open64)

ssize_t write(int fd, const void* from, std::size_t size) {
  return guarded_transfer("write", fd, size,
                          [=](std::size_t n) { return next(&::write, "write")(fd, from, n); });
}

#define DSTRAIN_PWRITE(name)                                           \
  ssize_t name(int fd, const void* from, std::size_t size, off_t at) { \
    return guarded_transfer("write", fd, size, [=](std::size_t n) {    \
      return next(&::pwrite, #name)(fd, from, n, at);                  \
    });                                                                \
  }
DSTRAIN_PWRITE(pwrite)
DSTRAIN_PWRITE(pwrite64)

#define DSTRAIN_PREAD(name)                                                                       \
  ssize_t name(int fd, void* into, std::size_t size, off_t at) {                                  \
    return guarded_transfer(                                                                      \
        "read", fd, size, [=](std::size_t n) { return next(&::pread, #name)(fd, into, n, at); }); \
  }
DSTRAIN_PREAD(pread)
DSTRAIN_PREAD(pread64)

/// What is sent over the network is no business of other faults.
ssize_t send(int socket, const void* from, std::size_t size, int flags) {
  const auto real = [=] {
    return next(&::send, "send")(socket, from, size, flags);
  };
  if (fault().call != "send") return real();
  const std::string message(static_cast<const char*>(from), size);
  return outcome("send", message) != Outcome::real ? -1 : real();
}

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  if (outcome("getaddrinfo", host) != Outcome::real) return errno;
  return next(&::getaddrinfo, "getaddrinfo")(host, service, hints, found);
}

int fsync(int fd) {
  return guarded("fsync", fd, [=] { return next(&::fsync, "fsync")(fd); });
}

int fdatasync(int fd) {
  return guarded("fsync", fd, [=] { return next(&::fdatasync, "fdatasync")(fd); });
}

int sync_file_range(int fd, off64_t from, off64_t bytes, unsigned flags) {
  return guarded("flush", fd, [=] {
    return next(&::sync_file_range, "sync_file_range")(fd, from, bytes, flags);
  });
}

#define DSTRAIN_RESERVE(name)                                                                      \
  int name(int fd, off_t offset, off_t size) {                                                     \
    return guarded_reserve(fd, [=] { return next(&::posix_fallocate, #name)(fd, offset, size); }); \
  }
DSTRAIN_RESERVE(posix_fallocate)
DSTRAIN_RESERVE(posix_fallocate64)

#define DSTRAIN_FALLOCATE(name)                                                        \
  int name(int fd, int mode, off_t offset, off_t size) {                               \
    return guarded("reserve", fd,                                                      \
                   [=] { return next(&::fallocate, #name)(fd, mode, offset, size); }); \
  }
DSTRAIN_FALLOCATE(fallocate)
DSTRAIN_FALLOCATE(fallocate64)

int mkdir(const char* path, mode_t mode) {
  return guarded("mkdir", path, [=] { return next(&::mkdir, "mkdir")(path, mode); });
}

int rename(const char* from, const char* to) {
  return guarded(
      "rename", from, [=] { return next(&::rename, "rename")(from, to); }, to);
}

int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
  return guarded(
      "rename", from,
      [=] { return next(&::renameat2, "renameat2")(from_fd, from, to_fd, to, flags); }, to);
}

}  // extern "C"
