#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "launcher/process/process.h"
#include "runtime/base/unique_handle.h"
#include "tests/support/process_end.h"

namespace dstrain::test {

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
    std::filesystem::path program{};     ///< another dstrain than the one that was built
    int input = -1;                      ///< its stdin, borrowed; -1: ours
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
  /// To all of processes(), as systemd and a shutdown do; from the last started on, or the first.
  enum class From { first, last };
  void signal_all(int number, From from = From::first) const;

  /// Waits until stdout, or stderr, holds `text` so many times; false when the streams end first.
  bool wait_for_output(const std::string& text, int times = 1);
  bool wait_for_error(const std::string& text);
  /// Waits until `condition` holds, looking at it again whenever something is printed, and after
  /// 20 ms for what nobody tells; false when the streams end first.
  bool wait_until(const std::function<bool()>& condition);
  /// Reads both streams to their end and reaps; the status as a shell shows it, -1 after so long.
  int wait(double seconds = hang_seconds);
  /// The same without reading: for a launcher whose output nobody takes.
  int wait_without_reading();
  /// Waits for the end of all processes(), again without reading; false after so long.
  [[nodiscard]] bool nothing_left(double seconds = hang_seconds) const;
  /// Presses Ctrl-C until none of processes() is left: two that are pending are one to the kernel.
  [[nodiscard]] bool interrupt_until_gone() const;

  void stop_reading_stdout() { out_fd_.reset(); }
  [[nodiscard]] const std::string& out() const { return out_; }
  [[nodiscard]] const std::string& err() const { return err_; }
  /// Whether it has ended, which is for wait() to find out how.
  [[nodiscard]] bool has_ended() const;
  /// Whether a signal ended it; known when it has ended.
  [[nodiscard]] bool was_killed() const { return was_killed_; }
  /// The most memory that it, or a process that it has waited for, had at once; known when it has
  /// ended.
  [[nodiscard]] long peak_kib() const { return peak_kib_; }

 private:
  bool pump(Deadline deadline);  ///< reads what comes next; false at the end of both streams
  int reap(Deadline deadline);

  std::string marker_;
  pid_t pid_ = 0;
  UniqueFd out_fd_;
  UniqueFd err_fd_;
  std::string out_;
  std::string err_;
  int status_ = -1;
  bool was_killed_ = false;
  long peak_kib_ = 0;
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

/// Copies dstrain and its library, and nothing that it finds beside it, into a folder. Returns the
/// program.
std::filesystem::path copy_program(const std::filesystem::path& folder);

}  // namespace dstrain::test
