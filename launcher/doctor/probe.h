#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/os/gpu_sensors.h"

namespace dstrain::launcher::doctor {

/// What a path names. Symbolic links are followed.
struct FileFacts {
  enum class Kind { absent, file, directory, socket, other };
  Kind kind = Kind::absent;
  unsigned mode = 0;  ///< its permission bits
  unsigned owner = 0;
  double age_seconds = 0;  ///< since it was last written to

  [[nodiscard]] bool others_may_write() const { return (mode & 022U) != 0; }
  [[nodiscard]] bool is_open_to_others() const { return (mode & 077U) != 0; }
};

/// A limit of this process, as getrlimit() says.
struct Limit {
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t soft = unlimited;
  std::uint64_t hard = unlimited;
};

/// The file system that a directory lies in.
struct DiskSpace {
  Bytes size = 0;
  Bytes free = 0;    ///< for this user
  std::string kind;  ///< "ext4", "tmpfs", "nfs"
  bool read_only = false;
};

/// The output of a program and how it ended.
struct ProgramRun {
  bool ended = false;  ///< false: not started, or killed because it took too long
  int status = -1;     ///< as a shell shows it
  std::string output;  ///< of both streams; or why it was not started
};

/// A GPU of the machine.
struct GpuFacts {
  std::string name;
  GpuReading reading;
};

/// A machine as the checks see it. Changes nothing, except that write_rate() writes and removes a
/// file. Tests implement one with planted faults.
class Probe {
 public:
  virtual ~Probe() = default;

  [[nodiscard]] virtual std::string version() const = 0;            ///< dstrain's own
  [[nodiscard]] virtual std::string program_directory() const = 0;  ///< where it lies
  [[nodiscard]] virtual std::string library_directory() const = 0;  ///< and where its library does
  [[nodiscard]] virtual std::string working_directory() const = 0;
  [[nodiscard]] virtual std::string host_name() const = 0;
  [[nodiscard]] virtual unsigned user() const = 0;
  [[nodiscard]] virtual int usable_cores() const = 0;
  [[nodiscard]] virtual std::optional<std::string> variable(const std::string& name) const = 0;

  /// The errors of dstrain and dstraind about variables that they would refuse.
  [[nodiscard]] virtual std::vector<std::string> refused_variables() const = 0;

  /// The text of a file, at most its first MiB; none when it cannot be read.
  [[nodiscard]] virtual std::optional<std::string> text(const std::string& path) const = 0;
  [[nodiscard]] virtual FileFacts facts(const std::string& path) const = 0;
  /// The names in a directory, sorted; none when it cannot be read.
  [[nodiscard]] virtual std::vector<std::string> names(const std::string& directory) const = 0;
  [[nodiscard]] virtual bool may_write(const std::string& path) const = 0;
  /// None when the path is not there.
  [[nodiscard]] virtual std::optional<DiskSpace> space(const std::string& path) const = 0;
  /// Bytes a second past the page cache, over a fraction of a second.
  [[nodiscard]] virtual Result<double> write_rate(const std::string& directory) const = 0;

  /// The path of a program on PATH; empty when there is none.
  [[nodiscard]] virtual std::string find_program(const std::string& name) const = 0;
  /// Runs it for at most a few seconds.
  [[nodiscard]] virtual ProgramRun run(const std::vector<std::string>& words) const = 0;
  /// Loads a shared library by path or soname; returns its file.
  [[nodiscard]] virtual Result<std::string> load(const std::string& library) const = 0;

  /// The driver's data about each GPU, in the order of nvidia-smi.
  [[nodiscard]] virtual Result<std::vector<GpuFacts>> gpus() const = 0;

  [[nodiscard]] virtual Limit limit(int resource) const = 0;
  /// Whether shared memory without a name works; the failure says why not.
  [[nodiscard]] virtual Result<bool> memory_file() const = 0;
  /// 0, or the errno with which the kernel refuses io_uring.
  [[nodiscard]] virtual int uring_error() const = 0;

  /// The numeric addresses of a host.
  [[nodiscard]] virtual Result<std::vector<std::string>> resolve(const std::string& host) const = 0;
  /// The addresses of this machine, without loopback.
  [[nodiscard]] virtual std::vector<std::string> own_addresses() const = 0;
  [[nodiscard]] virtual bool port_is_free(int port) const = 0;
  /// Whether a process answers at a Unix socket.
  [[nodiscard]] virtual bool is_served(const std::string& socket) const = 0;
};

}  // namespace dstrain::launcher::doctor
