#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/doctor/probe.h"

namespace dstrain::test {

/// A machine in memory with nothing wrong, for the doctor to look at; faults are planted by
/// changing what is public. User 1000, named "user", on "w0" at 10.0.0.10.
class FakeMachine final : public launcher::doctor::Probe {
 public:
  using Kind = launcher::doctor::FileFacts::Kind;
  struct Entry {
    launcher::doctor::FileFacts facts;
    std::string text{};
    bool readable = true;
  };

  FakeMachine();

  void put_file(const std::string& path, const std::string& text, unsigned mode = 0644) {
    files[path] = {{Kind::file, mode, 1000, 3600}, text};
  }
  void put_directory(const std::string& path, unsigned mode = 0755, unsigned owner = 1000) {
    files[path] = {{Kind::directory, mode, owner, 3600}};
  }
  void put_socket(const std::string& path) { files[path] = {{Kind::socket, 0600, 1000, 3600}}; }
  /// With what /proc says of it.
  void put_process(int pid, const std::string& name, int parent, const std::string& environment);

  std::map<std::string, Entry> files;
  std::map<std::string, std::string> variables;
  std::map<std::string, launcher::doctor::DiskSpace> disks;
  std::set<std::string> unwritable;
  std::map<std::string, std::string> programs;  ///< on PATH
  std::map<std::string, launcher::doctor::ProgramRun> runs;
  std::map<std::string, std::string> load_failures;
  std::vector<launcher::doctor::GpuFacts> gpus_read;
  std::string gpus_failure;
  std::map<int, launcher::doctor::Limit> limits;
  std::string memory_file_failure;
  int uring = 0;
  std::map<std::string, std::vector<std::string>> addresses;
  std::set<int> used_ports;
  std::set<std::string> served;
  int cores = 8;
  unsigned user_id = 1000;
  std::vector<std::string> refused;  ///< by dstrain, of the variables

  [[nodiscard]] std::string version() const override { return "1.2.3"; }
  [[nodiscard]] std::string program_directory() const override { return "/opt/dstrain/bin"; }
  [[nodiscard]] std::string library_directory() const override { return "/opt/dstrain/bin"; }
  [[nodiscard]] std::string working_directory() const override { return "/home/user/run"; }
  [[nodiscard]] std::string host_name() const override { return "w0"; }
  [[nodiscard]] unsigned user() const override { return user_id; }
  [[nodiscard]] int usable_cores() const override { return cores; }
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const override {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] std::vector<std::string> refused_variables() const override { return refused; }
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const override {
    const auto found = files.find(path);
    const bool there = found != files.end() && found->second.facts.kind == Kind::file;
    return there && found->second.readable ? std::optional(found->second.text) : std::nullopt;
  }
  [[nodiscard]] launcher::doctor::FileFacts facts(const std::string& path) const override {
    const auto found = files.find(path);
    return found == files.end() ? launcher::doctor::FileFacts{} : found->second.facts;
  }
  [[nodiscard]] std::vector<std::string> names(const std::string& directory) const override;
  [[nodiscard]] bool may_write(const std::string& path) const override {
    return !unwritable.contains(path);
  }
  [[nodiscard]] std::optional<launcher::doctor::DiskSpace> space(
      const std::string& path) const override {
    const auto found = disks.find(path);
    return found == disks.end() ? std::nullopt : std::optional(found->second);
  }
  [[nodiscard]] Result<double> write_rate(const std::string& /*directory*/) const override {
    return 1e9;
  }
  [[nodiscard]] std::string find_program(const std::string& name) const override {
    const auto found = programs.find(name);
    return found == programs.end() ? "" : found->second;
  }
  [[nodiscard]] launcher::doctor::ProgramRun run(
      const std::vector<std::string>& words) const override {
    const auto found = runs.find(fmt::format("{}", fmt::join(words, " ")));
    return found == runs.end() ? launcher::doctor::ProgramRun{false, -1, "no such program"}
                               : found->second;
  }
  [[nodiscard]] Result<std::string> load(const std::string& library) const override {
    const auto found = load_failures.find(library);
    if (found != load_failures.end()) return Failure{found->second};
    return "/usr/lib/" + library + ".1";
  }
  [[nodiscard]] Result<std::vector<launcher::doctor::GpuFacts>> gpus() const override {
    if (!gpus_failure.empty()) return Failure{gpus_failure};
    return gpus_read;
  }
  [[nodiscard]] launcher::doctor::Limit limit(int resource) const override {
    const auto found = limits.find(resource);
    return found == limits.end() ? launcher::doctor::Limit{} : found->second;
  }
  [[nodiscard]] Result<bool> memory_file() const override {
    if (!memory_file_failure.empty()) return Failure{memory_file_failure};
    return true;
  }
  [[nodiscard]] int uring_error() const override { return uring; }
  [[nodiscard]] Result<std::vector<std::string>> resolve(const std::string& host) const override {
    const auto found = addresses.find(host);
    if (found == addresses.end()) return Failure{"Name or service not known"};
    return found->second;
  }
  [[nodiscard]] std::vector<std::string> own_addresses() const override {
    return {"127.0.0.1", "10.0.0.10"};
  }
  [[nodiscard]] bool port_is_free(int port) const override { return !used_ports.contains(port); }
  [[nodiscard]] bool is_served(const std::string& socket) const override {
    return served.contains(socket);
  }
};

}  // namespace dstrain::test
