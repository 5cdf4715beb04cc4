#pragma once
#include <stdexcept>
#include <string>

// Also a public header of the library, dstrain/error.h: standard library only.
namespace dstrain {

/// The kind of an error. The programs map it to an exit status.
enum class ErrorCode {
  usage,                 ///< a wrong command line
  config,                ///< a wrong or unsupported configuration
  input,                 ///< a hostfile, data file or model directory that cannot be used
  newer_format,          ///< a file in a format that a newer dstrain has written
  io,                    ///< the operating system refused a read, a write or a file
  unsaved,               ///< a run that reached its end could not write its results
  out_of_memory,         ///< the machine's memory is exhausted
  out_of_device_memory,  ///< a device's memory, or a rank's budget of it, is exhausted
  device,                ///< an accelerator failed
  comm,                  ///< a peer or a collective failed
  remote,                ///< a rank or a host could not be started
  timeout,               ///< a rendezvous or a collective did not finish in time
  aborted,               ///< stopped because another rank failed or on request
  diverged,              ///< the loss or a gradient is not finite
  internal,              ///< a bug in dstrain
};

/// What dstrain throws. The message names the culprit and the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message, int errno_value = 0)
      : std::runtime_error(message), code_(code), errno_value_(errno_value) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  /// The errno of a failed system call; 0: another cause.
  [[nodiscard]] int errno_value() const noexcept { return errno_value_; }

 private:
  ErrorCode code_;
  int errno_value_;
};

}  // namespace dstrain
