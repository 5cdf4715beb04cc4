#include "runtime/comm/mpi/mpi_starter.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/deadline.h"
#include "runtime/base/number.h"
#include "runtime/base/unique_handle.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace dstrain::comm {
namespace {

/// How long mpirun may take to read the output of a rank.
constexpr double output_seconds = 2;

/// SLURM's PMI uses another protocol; srun -K1 ends the job there.
bool started_by_mpich() {
  return std::getenv("MPI_LOCALNRANKS") != nullptr;
}

/// Returns the connection to the proxy of mpirun that has started this process. The number may mean
/// something else by now, in a process that one of the ranks has started, or after MPI was left.
std::optional<int> connection_to_mpirun() {
  const char* const number = std::getenv("PMI_FD");
  const std::optional<int> fd = parse_number<int>(number == nullptr ? "" : number);
  int type = 0;
  socklen_t type_size = sizeof(type);
  ucred peer{};
  socklen_t peer_size = sizeof(peer);
  if (!fd || ::getsockopt(*fd, SOL_SOCKET, SO_TYPE, &type, &type_size) != 0 ||
      ::getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 || type != SOCK_STREAM ||
      peer.pid != ::getppid()) {
    return std::nullopt;
  }
  return fd;
}

/// Whether the parent is OpenMPI's mpirun or its daemon, by its name in the kernel. The parent
/// under srun, which also offers PMIx, ends its tasks itself.
bool is_child_of_openmpi() {
  constexpr std::array<std::string_view, 5> names{"mpirun", "orterun", "orted", "prterun", "prted"};
  const std::string path = "/proc/" + std::to_string(::getppid()) + "/comm";
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  const ssize_t size = file ? ::read(file.get(), text.data(), text.size()) : 0;
  if (size <= 0) return false;
  const std::string_view name(text.data(), static_cast<std::size_t>(size) - 1);  // no line end
  return std::ranges::find(names, name.substr(0, name.find('.'))) != names.end();
}

/// mpirun drops output that it has not read when it ends the job.
void wait_until_read(int output) {
  const Deadline deadline = Deadline::after(output_seconds);
  int unread = 0;
  for (int looks = 0; ::ioctl(output, FIONREAD, &unread) == 0 && unread > 0; ++looks) {
    if (deadline.passed()) return;
    rest_between_looks(looks);
  }
}

}  // namespace

void end_with_mpirun() noexcept {
  const bool mpich = started_by_mpich() && connection_to_mpirun();
  if (!mpich && !is_child_of_openmpi()) return;
  const pid_t parent = ::getppid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::raise(SIGKILL);  // the parent has died since
}

void report_failure_to_mpirun(int status) noexcept {
  if (status == 0 || !started_by_mpich()) return;
  const std::optional<int> connection = connection_to_mpirun();
  if (!connection) return;
  std::fflush(stdout);
  wait_until_read(STDOUT_FILENO);
  wait_until_read(STDERR_FILENO);
  const std::string command = "cmd=abort exitcode=" + std::to_string(status) + "\n";
  // The result does not matter: the exit status says almost the same.
  (void)::send(*connection, command.data(), command.size(), MSG_NOSIGNAL);
}

}  // namespace dstrain::comm
