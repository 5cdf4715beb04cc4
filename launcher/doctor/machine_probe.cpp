#include "launcher/doctor/machine_probe.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <linux/io_uring.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "launcher/plan/job_env.h"
#include "launcher/plan/machine.h"
#include "launcher/process/program_path.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/control_groups.h"
#include "runtime/os/plug_in.h"
#include "runtime/os/socket.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher::doctor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t text_bytes_max = 1U << 20;

std::string reason_of(int errno_value) {
  return std::generic_category().message(errno_value);
}

FileFacts::Kind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileFacts::Kind::file;
  if (S_ISDIR(mode)) return FileFacts::Kind::directory;
  return S_ISSOCK(mode) ? FileFacts::Kind::socket : FileFacts::Kind::other;
}

std::string digits_of(const sockaddr* address, socklen_t length) {
  std::array<char, NI_MAXHOST> text{};
  const int failure =
      ::getnameinfo(address, length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return failure == 0 ? text.data() : "";
}

}  // namespace

std::string MachineProbe::program_directory() const {
  return fs::path(own_path()).parent_path().string();
}

std::string MachineProbe::library_directory() const {
  return library_folder();
}

std::string MachineProbe::host_name() const {
  return this_machine().host_name;
}

unsigned MachineProbe::user() const {
  return ::geteuid();
}

int MachineProbe::usable_cores() const {
  return dstrain::usable_cores();
}

std::optional<std::string> MachineProbe::variable(const std::string& name) const {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::vector<std::string> MachineProbe::refused_variables() const {
  std::vector<std::string> refusals;
  const auto note_refusal = [&](auto read) {
    try {
      read();
    } catch (const Error& error) {
      refusals.emplace_back(error.what());
    }
  };
  note_refusal(read_worker_env);
  note_refusal(read_silence_seconds);
  note_refusal(read_hang_seconds);
  return refusals;
}

std::optional<std::string> MachineProbe::text(const std::string& path) const {
  if (facts(path).kind != FileFacts::Kind::file) return std::nullopt;  // do not wait for a pipe
  std::ifstream file(settings_.root + path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string bytes(text_bytes_max, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return file.bad() ? std::nullopt : std::optional(std::move(bytes));
}

FileFacts MachineProbe::facts(const std::string& path) const {
  struct stat info {};
  if (::stat((settings_.root + path).c_str(), &info) != 0) return {};
  return {kind_of(info.st_mode), info.st_mode & 07777U, info.st_uid,
          std::difftime(std::time(nullptr), info.st_mtime)};
}

std::vector<std::string> MachineProbe::names(const std::string& directory) const {
  std::vector<std::string> found;
  std::error_code ignored;
  for (fs::directory_iterator at(settings_.root + directory, ignored), end; !ignored && at != end;
       at.increment(ignored)) {
    found.push_back(at->path().filename().string());
  }
  std::ranges::sort(found);
  return found;
}

bool MachineProbe::may_write(const std::string& path) const {
  return ::access((settings_.root + path).c_str(), W_OK | X_OK) == 0;
}

std::string MachineProbe::find_program(const std::string& name) const {
  return find_on_path(name);
}

Limit MachineProbe::limit(int resource) const {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return {};
  const auto value = [](rlim_t bound) {
    return bound == RLIM_INFINITY ? Limit::unlimited : static_cast<std::uint64_t>(bound);
  };
  return {value(limit.rlim_cur), value(limit.rlim_max)};
}

Result<bool> MachineProbe::memory_file() const {
  const UniqueFd file(::memfd_create("dstrain-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::size_t bytes = 1U << 16;
  if (!file || ::ftruncate(file.get(), bytes) != 0) return Failure{reason_of(errno)};
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) return Failure{reason_of(errno)};
  ::munmap(address, bytes);
  return true;
}

int MachineProbe::uring_error() const {
  io_uring_params parameters{};
  const UniqueFd ring(static_cast<int>(::syscall(SYS_io_uring_setup, 2, &parameters)));
  return ring ? 0 : errno;
}

Result<std::vector<std::string>> MachineProbe::resolve(const std::string& host) const {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (status != 0) return Failure{::gai_strerror(status)};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    addresses.push_back(digits_of(at->ai_addr, at->ai_addrlen));
  }
  return addresses;
}

std::vector<std::string> MachineProbe::own_addresses() const {
  return dstrain::own_addresses();
}

bool MachineProbe::port_is_free(int port) const {
  return listen_tcp({"0.0.0.0", port}).ok();
}

/// Through the directory: a path may be longer than an address has room for.
bool MachineProbe::is_served(const std::string& socket) const {
  const fs::path path(settings_.root + socket);
  const UniqueFd directory(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const std::string through =
      fmt::format("/proc/self/fd/{}/{}", directory.get(), path.filename().string());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (!directory || !fd || through.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, through.c_str(), through.size());
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  return ::connect(fd.get(), generic, sizeof address) == 0 || errno == EAGAIN;
}

}  // namespace dstrain::launcher::doctor
