#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/process/process.h"
#include "launcher/protocol/wire.h"
#include "runtime/os/token_proof.h"

/// The protocol of launcher and agent: frames on the agent's stdin and stdout. None of it passes
/// through a shell or a command line.
namespace dstrain::launcher {

inline constexpr std::uint32_t protocol_version = 11;

/// The agent's first bytes. Bytes before them come from the program that started the agent.
inline constexpr std::string_view agent_preamble{
    "\x1e"
    "dstrain agent speaks"
    "\x1e\n"};

/// The argument of an agent whose parent is the launcher, which watches it.
inline constexpr std::string_view watched_agent = "--watched";
/// The argument of an agent that srun or mpirun has started and that connects to its launcher. The
/// name of the variable with its only rank follows.
inline constexpr std::string_view connecting_agent = "--connect";
/// The variable that tells such agents where the launcher listens, and the secret that they prove:
/// "SECRET ADDRESS PORT ADDRESS PORT ...". They use the first address that answers.
inline constexpr std::string_view agents_variable = "DSTRAIN_AGENTS";
/// Starts the proof. After it come the rank as a little-endian u32 and the agent's preamble.
inline constexpr Magic agents_magic{'d', 's', 't', 'r', 'a', 'g', 't', '1'};

enum class ToAgent : std::uint8_t {
  job = 1,           ///< JobSpec; once
  signal = 2,        ///< i32: SIGTERM for each rank's process group, or SIGKILL for all of the job
  ack = 3,           ///< u32: so many bytes of output were passed on
  port = 4,          ///< PortRequest; once, before the job, to the host of rank 0
  rank_message = 6,  ///< RankMessage for one of its ranks
  stacks = 7,        ///< u32 request: the stacks of all its ranks
  beat = 5,  ///< u32 milliseconds: the launcher's side lives; if silent for so long, it is gone
};

enum class FromAgent : std::uint8_t {
  hello = 65,     ///< Hello
  started = 66,   ///< u32 rank, i32 pid
  refused = 67,   ///< u32 rank, string: why it could not be started
  output = 68,    ///< u32 rank, u8 OutputStream, string
  exited = 69,    ///< u32 rank, i32 status as of waitpid, u8 KillCause
  note = 70,      ///< string: something the user should know
  finished = 71,  ///< every process of the job has ended
  port = 72,      ///< u32 port, now reserved while the agent lives; 0: string, why there is none
  rank_message = 74,  ///< RankMessage from a rank
  look = 75,          ///< AgentLook, periodically in a watched job
  stacks = 76,        ///< Stacks
  stop = 77,          ///< i32: which of stop_signals it received; its ranks were asked to stop
  beat = 73           ///< the agent lives; sent once it has received a beat
};

/// Beats that may be lost or late before their sender counts as gone.
inline constexpr double beats_per_silence = 6;

/// Schedules our beats on a connection and watches for the other side's silence. Times are seconds
/// of a steady clock.
class HeartBeat {
 public:
  /// From now on a side that is silent for so long counts as gone; 0: no beats, no silence.
  void agree_on(double silence_seconds) { silence_seconds_ = silence_seconds; }
  [[nodiscard]] double silence_seconds() const { return silence_seconds_; }

  /// Something came from the other side.
  void received(double now) { received_at_ = now; }
  /// Call it at least once per beat. If the last call was much longer ago, this process was
  /// stopped, and maybe the other with it, as in a suspended job: then its time starts anew.
  bool is_silent(double now);

  /// Whether a beat is due; the caller then sends it.
  bool take_turn(double now);
  /// When the next one is; none without beats.
  [[nodiscard]] std::optional<double> deadline() const;

 private:
  double silence_seconds_ = 0;
  double received_at_ = 0;
  std::optional<double> asked_at_;
  double next_beat_ = 0;
};

/// An agent's first message, about itself.
struct Hello {
  std::uint32_t protocol = protocol_version;
  std::string version;        ///< of dstrain
  std::string own_address;    ///< at which it was reached, in digits; empty: not known
  std::string peer_address;   ///< from which it was reached
  int gpus = 0;               ///< that programs may use there
  std::string gpu_problem{};  ///< what is wrong with its CUDA_VISIBLE_DEVICES; empty: nothing
};

std::string encode_hello(const Hello& hello);
/// For another protocol version, reads only its number.
Hello decode_hello(std::string_view payload);

/// Which port to use: the first free one from `port` on, or exactly `port`. The exact port was
/// typed, here or to all launchers of a job with several; or it is the default, because these
/// launchers cannot agree on another.
enum class PortRule : std::uint8_t {
  first_free = 0,
  typed = 1,
  typed_to_all = 2,
  default_of_all = 3
};

/// The master port.
struct PortRequest {
  int port = 0;
  PortRule rule = PortRule::first_free;
  /// Where the agent listens for the store of rank 0; empty: another program, which listens where
  /// it likes.
  std::string address{};
  int last = 0;  ///< the highest allowed port; 0: any

  [[nodiscard]] bool exactly() const { return rule != PortRule::first_free; }
};

std::string encode_port_request(const PortRequest& request);
PortRequest decode_port_request(std::string_view payload);

enum class OutputStream : std::uint8_t { out = 0, err = 1 };

/// Why a rank got SIGKILL or SIGXCPU: the exhausted resource, and how certain that is.
enum class KillCause : std::uint8_t {
  none = 0,
  maybe_memory = 1,
  likely_memory = 2,
  memory = 3,
  cpu_time = 4  ///< all that ulimit -t allows
};

/// The command of each rank.
struct Command {
  std::string program;                             ///< path to execute
  std::vector<std::string> argv;                   ///< arguments, byte for byte; argv[0] included
  std::optional<std::size_t> local_rank_position;  ///< where --local_rank=N is inserted
  bool daemon = false;  ///< dstraind: each node runs the one that its dstrain finds
};

/// The arguments of the rank with this local rank.
std::vector<std::string> arguments_of(const Command& command, int local_rank);

struct RankSpec {
  int rank = 0;
  int local_rank = 0;
  std::vector<EnvVar> env;  ///< of this rank alone
};

/// Everything an agent needs to start ranks: all ranks of its node, or one if each rank has its own
/// agent.
struct JobSpec {
  std::string working_directory;
  Command command;
  std::string input{};      ///< what rank 0 reads from stdin
  std::string venv_script;  ///< sourced by a shell that then becomes the rank; empty: none
  std::vector<EnvVar> env;  ///< of all ranks, over the agent's own environment
  std::vector<RankSpec> ranks;
  std::vector<std::string> log_files;   ///< one per rank, or none at all
  std::vector<int> slots;               ///< of the node's ranks, all of them, by local rank
  bool use_gpus = true;                 ///< slots are GPUs if the node has any
  bool tasks_have_gpus = false;         ///< a task that sees a single GPU owns it
  bool reports_progress = false;        ///< its first rank does, at each step
  std::uint32_t look_milliseconds = 0;  ///< between two looks at its ranks; 0: none
  bool bind_cores = false;              ///< each rank to its own cores
  std::vector<int> core_list;           ///< of these; empty: of all
  bool oversubscribe = false;           ///< allow more ranks than devices or cores
  /// Bytes of output the agent may send ahead of the launcher's acknowledgement. It bounds memory,
  /// and lets exits and other messages pass while the launcher's stdout is not read.
  std::uint32_t output_window_bytes = 1U << 20;
};

std::string encode_job(const JobSpec& job);
/// Throws Error{remote} for bytes that are not a job.
JobSpec decode_job(std::string_view payload);

struct Output {
  int rank = 0;
  OutputStream stream = OutputStream::out;
  std::string_view bytes;  ///< into the payload
};

/// A message of runtime/rank/rank_control.h.
struct RankMessage {
  int rank = 0;
  std::string text;
};

struct Exit {
  int rank = 0;
  int wait_status = 0;
  KillCause kill_cause = KillCause::none;
};

std::string encode_output(const Output& output);
Output decode_output(std::string_view payload);
std::string encode_rank_message(const RankMessage& message);
RankMessage decode_rank_message(std::string_view payload);
std::string encode_exit(const Exit& exit);
Exit decode_exit(std::string_view payload);

}  // namespace dstrain::launcher
