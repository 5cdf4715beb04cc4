#include "launcher/agent/connect.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

#include <unistd.h>

#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr double address_seconds = 5;  // for one address to answer
constexpr double proof_seconds = 20;

/// The content of agents_variable.
struct LauncherAddress {
  std::string secret;
  std::vector<Endpoint> endpoints;
};

std::string taken_variable(const std::string& name) {
  const char* const text = std::getenv(name.c_str());
  if (text == nullptr) {
    fail(ErrorCode::usage, "{} is not set: only the launcher starts dstrain agent", name);
  }
  return text;
}

LauncherAddress read_launcher_address() {
  const std::string name(agents_variable);
  std::istringstream words(taken_variable(name));
  ::unsetenv(name.c_str());
  LauncherAddress launcher;
  words >> launcher.secret;
  for (Endpoint endpoint; words >> endpoint.host >> endpoint.port;) {
    launcher.endpoints.push_back(endpoint);
  }
  return launcher;
}

UniqueFd connect_to_any(const std::vector<Endpoint>& endpoints) {
  std::string failures;
  for (const Endpoint& endpoint : endpoints) {
    Result<UniqueFd> socket = connect_tcp(endpoint, Deadline::after(address_seconds));
    if (socket.ok()) return std::move(socket.value());
    failures +=
        fmt::format("{}{}: {}", failures.empty() ? "" : ", ", to_string(endpoint), socket.error());
  }
  fail(ErrorCode::remote, "cannot connect to the launcher ({})", failures);
}

/// srun passes the options that placed its tasks in their environment, where an srun, sbatch or
/// mpirun that a rank starts would read them.
void forget_options_of_srun() {
  for (const char* const name :
       {"SLURM_DISTRIBUTION", "SLURM_OVERCOMMIT", "SLURM_MPI_TYPE", "SLURM_CPU_BIND",
        "SLURM_CPU_BIND_LIST", "SLURM_CPU_BIND_TYPE", "SLURM_CPU_BIND_VERBOSE"}) {
    ::unsetenv(name);
  }
}

}  // namespace

void connect_to_launcher(const std::string& rank_variable) {
  const LauncherAddress launcher = read_launcher_address();
  const auto rank = parse_number<std::uint32_t>(taken_variable(rank_variable));
  if (!rank) fail(ErrorCode::usage, "{} is not a rank", rank_variable);
  const UniqueFd socket = connect_to_any(launcher.endpoints);
  Deadline deadline = Deadline::after(proof_seconds);
  const TokenProof proof{.magic = agents_magic, .token = launcher.secret, .number = *rank};
  if (prove_token(socket.get(), proof, deadline) != TokenAnswer::accepted) {
    fail(ErrorCode::remote, "another program answers at the launcher's address");
  }
  forget_options_of_srun();
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) {
    if (::dup2(socket.get(), stream) < 0) fail_errno(errno, "dup2");
  }
}

}  // namespace dstrain::launcher
