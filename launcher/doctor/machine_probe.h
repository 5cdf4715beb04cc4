#pragma once
#include <string>
#include <utility>

#include "launcher/doctor/probe.h"

namespace dstrain::launcher::doctor {

/// Probes this machine. Runs programs and loads libraries in separate processes, so that they
/// cannot affect this one, which must be single-threaded.
class MachineProbe final : public Probe {
 public:
  struct Settings {
    std::string version;            ///< of dstrain
    std::string working_directory;  ///< of the job, which may differ from this process's
    std::string root{};             ///< prefixed to every path of a file
  };
  explicit MachineProbe(Settings settings) : settings_(std::move(settings)) {}

  [[nodiscard]] std::string version() const override { return settings_.version; }
  [[nodiscard]] std::string program_directory() const override;
  [[nodiscard]] std::string library_directory() const override;
  [[nodiscard]] std::string working_directory() const override {
    return settings_.working_directory;
  }
  [[nodiscard]] std::string host_name() const override;
  [[nodiscard]] unsigned user() const override;
  [[nodiscard]] int usable_cores() const override;
  [[nodiscard]] std::optional<std::string> variable(const std::string& name) const override;
  [[nodiscard]] std::vector<std::string> refused_variables() const override;
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const override;
  [[nodiscard]] FileFacts facts(const std::string& path) const override;
  [[nodiscard]] std::vector<std::string> names(const std::string& directory) const override;
  [[nodiscard]] bool may_write(const std::string& path) const override;
  [[nodiscard]] std::optional<DiskSpace> space(const std::string& path) const override;
  [[nodiscard]] Result<double> write_rate(const std::string& directory) const override;
  [[nodiscard]] std::string find_program(const std::string& name) const override;
  [[nodiscard]] ProgramRun run(const std::vector<std::string>& words) const override;
  [[nodiscard]] Result<std::string> load(const std::string& library) const override;
  [[nodiscard]] Result<std::vector<GpuFacts>> gpus() const override;
  [[nodiscard]] Limit limit(int resource) const override;
  [[nodiscard]] Result<bool> memory_file() const override;
  [[nodiscard]] int uring_error() const override;
  [[nodiscard]] Result<std::vector<std::string>> resolve(const std::string& host) const override;
  [[nodiscard]] std::vector<std::string> own_addresses() const override;
  [[nodiscard]] bool port_is_free(int port) const override;
  [[nodiscard]] bool is_served(const std::string& socket) const override;

 private:
  Settings settings_;
};

}  // namespace dstrain::launcher::doctor
