#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {

/// Runs a program and returns what it prints; throws when it fails.
std::string run_program(const std::vector<std::string>& command);
/// The program of this name in the usual places; empty when there is none.
std::string find_program(const std::string& name);

/// A real OpenSSH server with a key, a configuration and a home directory of its own. Run by root
/// it is a host apart: its own users (one, named "tester", with the shell asked for), its own /run
/// and its own processes, which all end with it. Otherwise it lets in the user who runs the test.
/// The system's own server and the user's files are not touched.
class SshServer {
 public:
  struct Settings {
    std::vector<std::string> within;  ///< a command line that runs another, on another node
    std::string address = "127.0.0.1";
    int port = 0;                      ///< 0: a free one
    std::string shell = "/bin/bash";   ///< of the user; only when root runs the test
    std::vector<std::string> options;  ///< more lines for sshd_config, which come first
  };
  /// The reason when this machine has no server to run.
  static std::optional<std::string> refusal();

  explicit SshServer(Settings settings);
  SshServer(const SshServer&) = delete;
  SshServer& operator=(const SshServer&) = delete;
  SshServer(SshServer&&) = delete;
  SshServer& operator=(SshServer&&) = delete;
  ~SshServer() = default;

  [[nodiscard]] int port() const { return settings_.port; }
  [[nodiscard]] const std::string& address() const { return settings_.address; }
  [[nodiscard]] const std::string& user() const { return user_; }
  [[nodiscard]] int pid() const { return process_->pid(); }
  /// The user's home there.
  [[nodiscard]] std::filesystem::path home() const { return folder_.path() / "home"; }
  /// A line for known_hosts.
  [[nodiscard]] std::string known_hosts_line() const;
  /// "SHA256:...", as ssh-keygen says it.
  [[nodiscard]] std::string fingerprint() const;
  /// Lets in who has the private key of this public one.
  void let_in(const std::filesystem::path& public_key) const;
  /// Comes back with another key.
  void restart_with_new_key();
  /// Kills the processes that serve connections; the server itself stays.
  void kill_connections() const;
  /// What users run there: every process but the server's own.
  [[nodiscard]] std::vector<pid_t> user_processes() const;

 private:
  void make_key() const;
  void write_configuration() const;
  void start();

  Settings settings_;
  TempDir folder_;
  std::string user_;
  std::optional<RankProcess> process_;
};

/// The user's side: a home directory with a key, a configuration and known hosts, which $HOME of
/// this process names while it lives.
class SshUser {
 public:
  SshUser();
  SshUser(const SshUser&) = delete;
  SshUser& operator=(const SshUser&) = delete;
  SshUser(SshUser&&) = delete;
  SshUser& operator=(SshUser&&) = delete;
  ~SshUser() = default;

  [[nodiscard]] std::filesystem::path ssh() const { return folder_.path() / ".ssh"; }
  [[nodiscard]] std::filesystem::path home() const { return folder_.path(); }
  [[nodiscard]] std::filesystem::path key() const { return ssh() / "id_ed25519"; }
  [[nodiscard]] std::filesystem::path public_key() const { return ssh() / "id_ed25519.pub"; }
  [[nodiscard]] std::filesystem::path known_hosts() const { return ssh() / "known_hosts"; }
  void configure(const std::string& text) const;
  /// The server lets the key in, its key is known, and `alias` names it in the configuration.
  void befriend(const SshServer& server, const std::string& alias) const;
  /// For the configuration: where the program ssh, which asks the system for the user's home and
  /// not $HOME, finds the key and the known hosts.
  [[nodiscard]] std::string for_program_ssh(const std::string& alias) const;

 private:
  TempDir folder_;
};

}  // namespace dstrain::test
