// What other users of the machine do to the ports of launches must make none fail.
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>

#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launcher/plan/options.h"
#include "runtime/base/error.h"
#include "tests/e2e/launch_process.h"
#include "tests/e2e/resumable_run.h"
#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::test;

namespace {

constexpr int first_port = launcher::default_master_port;
constexpr uid_t nobody = 65534;

/// A process of another user on a node, that does `work` for ever.
class Stranger {
 public:
  Stranger(const TwoNodes& nodes, const std::function<void()>& work) : pid_(::fork()) {
    if (pid_ < 0) fail_errno(errno, "fork");
    if (pid_ != 0) return;
    nodes.enter(0);
    const rlimit many{4096, 4096};
    ::setrlimit(RLIMIT_NOFILE, &many);
    if (::setgid(nobody) != 0 || ::setuid(nobody) != 0) ::_exit(1);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) work();
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  Stranger(Stranger&&) = delete;
  Stranger& operator=(Stranger&&) = delete;
  ~Stranger() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

/// Takes a port in any way that there is; none when it is another's.
UniqueFd steal(int port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  const bool taken = ::bind(fd.get(), name, sizeof address) == 0 && ::listen(fd.get(), 1) == 0;
  return taken ? std::move(fd) : UniqueFd();
}

UniqueFd take_name(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const std::size_t bytes = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  const auto* const given = reinterpret_cast<const sockaddr*>(&address);
  return ::bind(fd.get(), given, static_cast<socklen_t>(bytes)) == 0 ? std::move(fd) : UniqueFd();
}

std::unique_ptr<Launch> start_training(const TwoNodes& nodes, const std::filesystem::path& output) {
  std::vector<std::string> command{"--num_gpus", "2"};
  for (const std::string& word : train_command(output)) command.push_back(word);
  Launch::Options options;
  options.directory = golden_folder.string();
  options.wrapper = nodes.on(0, {});
  options.env = {{"OMP_NUM_THREADS", "1"}};
  return std::make_unique<Launch>(command, options);
}

/// Two at a time.
void check_launches(const TwoNodes& nodes, int pairs) {
  for (int pair = 0; pair < pairs; ++pair) {
    const TempDir folder;
    std::vector<std::unique_ptr<Launch>> launches;
    for (const char* const name : {"a", "b"}) {
      launches.push_back(start_training(nodes, folder.path() / name));
    }
    for (const auto& launch : launches) {
      const int status = launch->wait();
      CAPTURE(pair, launch->err());
      CHECK(status == 0);
    }
  }
}

}  // namespace

TEST_CASE("Port: no launch fails because a program takes its port", "[net][port]") {
  if (const auto reason = TwoNodes::refusal()) skip(*reason);
  const TwoNodes nodes;
  constexpr int ports = 8;
  std::vector<UniqueFd> stolen(ports);
  // Gives each back before it takes it again, so that launches find it free half of the time.
  const Stranger thief(nodes, [&] {
    for (int i = 0; i < ports; ++i) {
      UniqueFd& fd = stolen[static_cast<std::size_t>(i)];
      fd = fd ? UniqueFd() : steal(first_port + i);
    }
  });
  check_launches(nodes, 4);
}

TEST_CASE("Port: no launch fails because the first thousand ports are taken", "[net][port]") {
  if (const auto reason = TwoNodes::refusal()) skip(*reason);
  const TwoNodes nodes;
  std::vector<UniqueFd> stolen;
  const Stranger owner(nodes, [&] {
    for (int port = first_port; port < first_port + 1100; ++port) stolen.push_back(steal(port));
    ::raise(SIGSTOP);
  });
  check_launches(nodes, 1);
}

TEST_CASE("Port: no launch fails because lock names of ports are taken", "[net][port]") {
  if (const auto reason = TwoNodes::refusal()) skip(*reason);
  const TwoNodes nodes;
  std::vector<UniqueFd> names;
  const Stranger owner(nodes, [&] {
    for (int port = first_port; port < first_port + 1100; ++port) {
      names.push_back(take_name(fmt::format("dstrain-port-{}", port)));
    }
    ::raise(SIGSTOP);
  });
  check_launches(nodes, 1);
}
