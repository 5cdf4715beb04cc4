#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "launcher/doctor/finding.h"
#include "runtime/base/units.h"

/// The messages between the process that examines a host and the one that asks it. Requests are
/// words on the control socket of a rank; answers are JSON objects, as lines on standard output.
///   time                       -> time
///   look                       -> machine, then check and findings for each check, then looked
///   listen ADDRESS             -> listening
///   reach, then a Peer a line  -> unreached for each that is not reached, then tried
///   end                        -> its end
namespace dstrain::launcher::doctor {

/// Properties that all hosts of a job should share.
struct MachineFacts {
  std::string processor;
  std::string instructions;  ///< those by which kernels are chosen
  int cores = 0;
  Bytes memory = 0;
};

struct HostSays {
  enum class Kind { time, machine, check, finding, looked, listening, unreached, tried };
  Kind kind = Kind::time;
  double time = 0;  ///< seconds since 1970
  MachineFacts machine{};
  std::string text{};  ///< check: its name; unreached: why; listening: why there is no port
  Finding finding{};
  int number = 0;       ///< listening: the port, 0 for none; tried: how many peers were
  std::string peer{};   ///< unreached: the host
  std::string nonce{};  ///< listening: what it sends to each connection
};

/// A line, with its end.
std::string encode_says(const HostSays& says);
/// Throws Error{remote} for any other line.
HostSays decode_says(std::string_view line);

/// Where another host listens.
struct Peer {
  std::string host;
  std::string address;
  int port = 0;
  std::string nonce;
};

/// Messages of "reach" for all of `peers`, none too long for the control socket.
std::vector<std::string> encode_reach(const std::vector<Peer>& peers);
/// Throws Error{remote}.
std::vector<Peer> decode_reach(std::string_view message);

}  // namespace dstrain::launcher::doctor
