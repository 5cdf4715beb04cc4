#pragma once
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launcher/process/process.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::test {

/// Polls `condition` until it holds or `seconds` have passed; returns whether it held.
bool eventually(const std::function<bool()>& condition, double seconds = 240);

/// Living processes whose environment holds `entry`, NAME=VALUE.
std::vector<pid_t> processes_with(const std::string& entry);

/// The real dstrain as a child process. Whatever it starts inherits a marker variable, by which it
/// is found however it hides. The destructor kills what is left.
class Launch {
 public:
  struct Options {
    std::vector<launcher::EnvVar> env;
    std::string directory;               ///< empty: ours
    std::vector<std::string> wrapper{};  ///< a program and arguments that come before dstrain's
  };
  explicit Launch(std::vector<std::string> arguments) : Launch(std::move(arguments), Options()) {}
  Launch(std::vector<std::string> arguments, const Options& options);
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  Launch(Launch&&) = delete;
  Launch& operator=(Launch&&) = delete;
  ~Launch();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The agent: the launcher's child. 0 while there is none.
  [[nodiscard]] pid_t agent_pid() const;
  /// Living processes that carry the marker, the launcher included.
  [[nodiscard]] std::vector<pid_t> processes() const;
  void signal(int number) const;

  /// Waits until stdout holds `text` so many times.
  bool wait_for_output(const std::string& text, int times = 1);
  /// Reads both streams to their end and reaps; the status as a shell shows it, -1 after so long.
  int wait(double seconds = 240);
  /// The same without reading: for a launcher whose output nobody takes.
  int wait_without_reading();
  bool nothing_left() const;

  void stop_reading_stdout() { out_fd_.reset(); }
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& err() const { return err_; }

 private:
  bool pump();  ///< false at the end of both streams
  bool reap();

  std::string marker_;
  pid_t pid_ = 0;
  UniqueFd out_fd_;
  UniqueFd err_fd_;
  std::string out_;
  std::string err_;
  int status_ = -1;
};

/// A launch of so many ranks, each of which runs a shell's script.
std::vector<std::string> shell_command(int ranks, const std::string& script);

/// What a command said, and its status as a shell shows it.
struct Outcome {
  int status = -1;
  std::string out;
  std::string err;
};

/// Runs dstrain to its end.
Outcome run_command(std::vector<std::string> arguments, const Launch::Options& options = {});

}  // namespace dstrain::test
