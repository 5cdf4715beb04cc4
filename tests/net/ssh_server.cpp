#include "tests/net/ssh_server.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "launcher/process/children.h"
#include "runtime/base/deadline.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> environment{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"};

/// Run as root, in namespaces of its own: users, run-time files and processes are the host's.
constexpr const char* enter_host = R"(set -e
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs tmpfs /run
mkdir /run/sshd
exec "$2" -D -e -f "$1/sshd_config")";

bool is_root() {
  return ::geteuid() == 0;
}

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Installed, or unpacked into the build tree by tests/run.sh.
std::string sshd_path() {
  const fs::path unpacked = fs::path(DSTRAIN_SOURCE_DIR) / "build/openssh-server/usr/sbin/sshd";
  return fs::exists(unpacked) ? unpacked.string() : find_program("sshd");
}

/// Whether this is the command line of a process that serves one connection: of sshd itself before
/// OpenSSH 9.8, of sshd-session and sshd-auth since.
bool is_connection(const std::string& command) {
  if (command.find("[listener]") != command.npos) return false;
  return command.starts_with("sshd: ") || command.find("sshd-session") != command.npos ||
         command.find("sshd-auth") != command.npos;
}

/// What only OpenSSH 9.8 and newer knows: where its other programs are, which may be unpacked too,
/// and that clients which do not log in are welcome again at once.
std::string newer_options() {
  const fs::path programs = fs::path(sshd_path()).parent_path().parent_path() / "lib/openssh";
  std::string options;
  for (const auto& [option, name] :
       {std::pair{"SshdSessionPath", "sshd-session"}, std::pair{"SshdAuthPath", "sshd-auth"}}) {
    const fs::path program = programs / name;
    if (fs::exists(program)) options += fmt::format("{} {}\n", option, program.string());
  }
  return options.empty() ? "" : options + "PerSourcePenalties no\n";
}

}  // namespace

std::string find_program(const std::string& name) {
  for (const char* const folder : {"/usr/sbin", "/usr/bin", "/sbin", "/bin"}) {
    const fs::path path = fs::path(folder) / name;
    if (fs::exists(path)) return path.string();
  }
  return "";
}

std::string run_program(const std::vector<std::string>& command) {
  RankProcess process({command, environment});
  std::string output = process.read_all();
  if (process.wait() != 0) throw std::runtime_error(command.front() + ": " + output);
  return output;
}

std::optional<std::string> SshServer::refusal() {
  if (sshd_path().empty()) {
    return "there is no sshd (.ci/setup.sh --unpack openssh-server build/openssh-server)";
  }
  for (const char* const program : {"ssh-keygen", "unshare"}) {
    if (find_program(program).empty()) {
      return fmt::format("there is no {} (Debian: openssh-client, util-linux)", program);
    }
  }
  if (!is_root()) return std::nullopt;
  try {
    run_program({find_program("unshare"), "--mount", "--pid", "--fork", "--mount-proc", "true"});
  } catch (const std::exception& error) {
    return fmt::format("root may not make a host's namespaces here: {}", error.what());
  }
  return std::nullopt;
}

SshServer::SshServer(Settings settings)
    : settings_(std::move(settings)),
      user_(is_root() ? "dstrain-tester" : ::getpwuid(::geteuid())->pw_name) {
  if (settings_.port == 0) settings_.port = free_port();
  fs::create_directories(home() / ".ssh");
  std::ofstream(home() / ".ssh/authorized_keys");
  std::ofstream(folder_.path() / "passwd")
      << "root:*:0:0::/root:/bin/sh\nsshd:*:65533:65534::/run/sshd:/usr/sbin/nologin\n"
      << "dstrain-tester:*:0:0::" << home().string() << ":" << settings_.shell << "\n";
  make_key();
  write_configuration();
  start();
}

void SshServer::make_key() const {
  const fs::path key = folder_.path() / "host_key";
  fs::remove(key);
  run_program({find_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key});
}

void SshServer::write_configuration() const {
  std::ofstream file(folder_.path() / "sshd_config");
  for (const std::string& option : settings_.options) file << option << "\n";
  file << "ListenAddress " << settings_.address << "\nPort " << settings_.port << "\n"
       << "HostKey " << (folder_.path() / "host_key").string() << "\n"
       << "AuthorizedKeysFile " << (home() / ".ssh/authorized_keys").string() << "\n"
       << "SetEnv DSTRAIN_TEST_SERVER=" << folder_.path().filename().string() << "\n"
       << "PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n"
       << "KbdInteractiveAuthentication no\nMaxStartups 1000\nMaxSessions 100\n"
       << newer_options();
}

void SshServer::start() {
  process_.reset();
  std::vector<std::string> command = settings_.within;
  const std::string folder = folder_.path();
  if (is_root()) {
    const std::vector<std::string> enter{
        find_program("unshare"), "--mount", "--pid",    "--fork", "--kill-child", "--mount-proc",
        find_program("sh"),      "-c",      enter_host, "host",   folder,         sshd_path()};
    command.insert(command.end(), enter.begin(), enter.end());
  } else {
    const std::vector<std::string> plain{sshd_path(), "-D", "-e", "-f", folder + "/sshd_config"};
    command.insert(command.end(), plain.begin(), plain.end());
  }
  const Deadline deadline = Deadline::after(60);
  std::string said;
  do {
    process_.emplace(Program{command, environment});
    said.clear();
    for (std::string line; !(line = process_->read_line()).empty();) {
      if (line.find("Server listening") != line.npos) return;
      said += line + "\n";
    }
    // The one before may still be on its way out, and has the port.
  } while (said.find("Address already in use") != said.npos && !deadline.passed());
  throw std::runtime_error("sshd does not start: " + said);
}

std::string SshServer::known_hosts_line() const {
  const std::string name = settings_.port == 22
                               ? settings_.address
                               : fmt::format("[{}]:{}", settings_.address, settings_.port);
  return name + " " + text_of(folder_.path() / "host_key.pub");
}

std::string SshServer::fingerprint() const {
  std::istringstream words(
      run_program({find_program("ssh-keygen"), "-lf", folder_.path() / "host_key.pub"}));
  std::string bits;
  std::string print;
  words >> bits >> print;
  return print;
}

void SshServer::let_in(const fs::path& public_key) const {
  std::ofstream(home() / ".ssh/authorized_keys", std::ios::app) << text_of(public_key);
}

void SshServer::restart_with_new_key() {
  make_key();
  start();
}

void SshServer::kill_connections() const {
  std::vector<pid_t> processes{process_->pid()};
  for (std::size_t i = 0; i < processes.size(); ++i) {
    std::istringstream children(
        text_of(fmt::format("/proc/{}/task/{}/children", processes[i], processes[i])));
    for (pid_t child = 0; children >> child;) processes.push_back(child);
  }
  for (const pid_t pid : processes) {
    const std::string command = text_of(fmt::format("/proc/{}/cmdline", pid));
    if (is_connection(command)) ::kill(pid, SIGKILL);
  }
}

std::vector<pid_t> SshServer::user_processes() const {
  const std::string entry = "DSTRAIN_TEST_SERVER=" + folder_.path().filename().string();
  std::vector<pid_t> found;
  for (const auto& directory : fs::directory_iterator("/proc")) {
    const int pid = std::atoi(directory.path().filename().c_str());
    if (pid > 0 && launcher::has_environment_entry(pid, entry.c_str())) found.push_back(pid);
  }
  return found;
}

SshUser::SshUser() {
  fs::create_directories(ssh());
  run_program({find_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key()});
  ::setenv("HOME", home().c_str(), 1);
  ::unsetenv("SSH_AUTH_SOCK");
}

void SshUser::configure(const std::string& text) const {
  std::ofstream(ssh() / "config", std::ios::app) << text;
}

void SshUser::befriend(const SshServer& server, const std::string& alias) const {
  server.let_in(public_key());
  std::ofstream(known_hosts(), std::ios::app) << server.known_hosts_line();
  configure(fmt::format("Host {}\n  HostName {}\n  Port {}\n  User {}\n", alias, server.address(),
                        server.port(), server.user()));
}

std::string SshUser::for_program_ssh(const std::string& alias) const {
  return fmt::format("Host {}\n  UserKnownHostsFile {}\n  IdentityFile {}\n", alias,
                     known_hosts().string(), key().string());
}

}  // namespace dstrain::test
