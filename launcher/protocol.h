#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/command.h"
#include "launcher/env_file.h"
#include "launcher/wire.h"

/// What launcher and agent say to each other, as frames on the agent's stdin and stdout. Nothing of
/// it passes a shell or a command line.
namespace dstrain::launcher {

inline constexpr std::uint32_t protocol_version = 1;

/// Bytes of output the agent may send ahead of the launcher's acknowledgement. It bounds memory and
/// lets exits and other news pass while nobody reads the launcher's stdout.
inline constexpr std::size_t output_window_bytes = 1U << 20;

enum class ToAgent : std::uint8_t {
  job = 1,     ///< JobSpec; once, first
  signal = 2,  ///< i32: SIGTERM for each rank's process group, or SIGKILL for all of the job
  ack = 3,     ///< u32: so many bytes of output were passed on
  tell = 16,   ///< i32 rank, string: a message of rank_control.h for it
};

enum class FromAgent : std::uint8_t {
  hello = 65,     ///< u32 protocol version
  started = 66,   ///< u32 rank, i32 pid
  refused = 67,   ///< u32 rank, string: why it could not be started
  output = 68,    ///< u32 rank, u8 OutputStream, string
  exited = 69,    ///< u32 rank, i32 status as of waitpid, u8 OomVerdict
  note = 70,      ///< string: something the user should know
  finished = 71,  ///< every process of the job has ended
  told = 96       ///< i32 rank, string: a message of rank_control.h from it
};

enum class OutputStream : std::uint8_t { out = 0, err = 1 };

/// How sure it is that the kernel killed a rank for want of memory.
enum class OomVerdict : std::uint8_t { none = 0, possible = 1, likely = 2, certain = 3 };

struct RankSpec {
  int rank = 0;
  int local_rank = 0;
  std::vector<EnvVar> env;  ///< of this rank alone
};

/// Everything an agent needs to start its node's ranks.
struct JobSpec {
  std::string working_directory;
  Command command;
  std::vector<EnvVar> env;  ///< of all ranks, over the agent's own environment
  std::vector<RankSpec> ranks;
  std::vector<std::string> log_files;  ///< one per rank, or none at all
};

std::string encode_job(const JobSpec& job);
/// Throws Error{remote} for bytes that are no job.
JobSpec decode_job(std::string_view payload);

struct Output {
  int rank = 0;
  OutputStream stream = OutputStream::out;
  std::string_view bytes;  ///< into the payload
};

/// A message of rank_control.h to a rank or from it.
struct RankMessage {
  int rank = 0;
  std::string text;
};

struct Exit {
  int rank = 0;
  int wait_status = 0;
  OomVerdict oom = OomVerdict::none;
};

std::string encode_output(const Output& output);
Output decode_output(std::string_view payload);
std::string encode_rank_message(const RankMessage& message);
RankMessage decode_rank_message(std::string_view payload);
std::string encode_exit(const Exit& exit);
Exit decode_exit(std::string_view payload);

}  // namespace dstrain::launcher
