#include "launcher/protocol/protocol.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::uint32_t no_position = 0xFFFFFFFF;

void put_env(WireWriter& out, const std::vector<EnvVar>& env) {
  out.count(env.size());
  for (const EnvVar& variable : env) {
    out.string(variable.name);
    out.string(variable.value);
  }
}

std::vector<EnvVar> get_env(WireReader& in) {
  std::vector<EnvVar> env(in.count(8));
  for (EnvVar& variable : env) {
    variable.name = in.string();
    variable.value = in.string();
  }
  return env;
}

void put_strings(WireWriter& out, const std::vector<std::string>& strings) {
  out.count(strings.size());
  for (const std::string& text : strings) out.string(text);
}

std::vector<std::string> get_strings(WireReader& in) {
  std::vector<std::string> strings(in.count(4));
  for (std::string& text : strings) text = in.string();
  return strings;
}

}  // namespace

bool HeartBeat::is_silent(double now) {
  if (silence_seconds_ == 0) return false;
  const double since = now - asked_at_.value_or(now);
  asked_at_ = now;
  if (since > silence_seconds_ / 2) received_at_ = now;
  return now > received_at_ + silence_seconds_;
}

bool HeartBeat::take_turn(double now) {
  if (silence_seconds_ == 0 || now < next_beat_) return false;
  next_beat_ = now + silence_seconds_ / beats_per_silence;
  return true;
}

std::optional<double> HeartBeat::deadline() const {
  return silence_seconds_ > 0 ? std::optional(next_beat_) : std::nullopt;
}

std::vector<std::string> arguments_of(const Command& command, int local_rank) {
  std::vector<std::string> arguments = command.argv;
  if (command.local_rank_position) {
    arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(*command.local_rank_position),
                     fmt::format("--local_rank={}", local_rank));
  }
  return arguments;
}

std::string encode_hello(const Hello& hello) {
  WireWriter out;
  out.u32(hello.protocol);
  out.string(hello.version);
  out.string(hello.own_address);
  out.string(hello.peer_address);
  out.i32(hello.gpus);
  out.string(hello.gpu_problem);
  return out.take();
}

Hello decode_hello(std::string_view payload) {
  WireReader in(payload);
  Hello hello;
  hello.protocol = in.u32();
  if (hello.protocol != protocol_version) return hello;
  hello.version = in.string();
  hello.own_address = in.string();
  hello.peer_address = in.string();
  hello.gpus = in.i32();
  hello.gpu_problem = in.string();
  in.finish();
  return hello;
}

std::string encode_port_request(const PortRequest& request) {
  WireWriter out;
  out.i32(request.port);
  out.u8(static_cast<std::uint8_t>(request.rule));
  out.string(request.address);
  out.i32(request.last);
  return out.take();
}

PortRequest decode_port_request(std::string_view payload) {
  WireReader in(payload);
  PortRequest request;
  request.port = in.i32();
  request.rule = static_cast<PortRule>(in.u8());
  request.address = in.string();
  request.last = in.i32();
  in.finish();
  return request;
}

std::string encode_job(const JobSpec& job) {
  WireWriter out;
  out.string(job.working_directory);
  out.string(job.command.program);
  out.u8(job.command.daemon ? 1 : 0);
  put_strings(out, job.command.argv);
  const auto position = job.command.local_rank_position;
  out.u32(position ? static_cast<std::uint32_t>(*position) : no_position);
  out.string(job.input);
  out.string(job.venv_script);
  put_env(out, job.env);
  out.count(job.ranks.size());
  for (const RankSpec& rank : job.ranks) {
    out.i32(rank.rank);
    out.i32(rank.local_rank);
    put_env(out, rank.env);
  }
  put_strings(out, job.log_files);
  out.count(job.slots.size());
  for (const int slot : job.slots) out.i32(slot);
  out.u8(job.reports_progress ? 1 : 0);
  out.u8(job.use_gpus ? 1 : 0);
  out.u8(job.tasks_have_gpus ? 1 : 0);
  out.u8(job.oversubscribe ? 1 : 0);
  out.u8(job.bind_cores ? 1 : 0);
  out.count(job.core_list.size());
  for (const int core : job.core_list) out.i32(core);
  out.u32(job.output_window_bytes);
  out.u32(job.look_milliseconds);
  return out.take();
}

JobSpec decode_job(std::string_view payload) {
  WireReader in(payload);
  JobSpec job;
  job.working_directory = in.string();
  job.command.program = in.string();
  job.command.daemon = in.u8() != 0;
  job.command.argv = get_strings(in);
  const std::uint32_t position = in.u32();
  if (position != no_position) job.command.local_rank_position = position;
  job.input = in.string();
  job.venv_script = in.string();
  job.env = get_env(in);
  job.ranks.resize(in.count(12));
  for (RankSpec& rank : job.ranks) {
    rank.rank = in.i32();
    rank.local_rank = in.i32();
    rank.env = get_env(in);
  }
  job.log_files = get_strings(in);
  job.slots.resize(in.count(4));
  for (int& slot : job.slots) slot = in.i32();
  job.reports_progress = in.u8() != 0;
  job.use_gpus = in.u8() != 0;
  job.tasks_have_gpus = in.u8() != 0;
  job.oversubscribe = in.u8() != 0;
  job.bind_cores = in.u8() != 0;
  job.core_list.resize(in.count(4));
  for (int& core : job.core_list) core = in.i32();
  job.output_window_bytes = in.u32();
  job.look_milliseconds = in.u32();
  in.finish();
  const auto ranks_end = static_cast<int>(job.slots.size());
  const bool slots_fit = std::ranges::all_of(job.ranks, [ranks_end](const RankSpec& rank) {
    return rank.local_rank >= 0 && rank.local_rank < ranks_end;
  });
  const bool logs_fit = job.log_files.empty() || job.log_files.size() == job.ranks.size();
  const std::size_t insert_at = job.command.local_rank_position.value_or(0);
  if (job.ranks.empty() || !slots_fit || !logs_fit || insert_at > job.command.argv.size()) {
    fail(ErrorCode::remote, "agent protocol: the job is inconsistent");
  }
  return job;
}

std::string encode_output(const Output& output) {
  WireWriter out;
  out.i32(output.rank);
  out.u8(static_cast<std::uint8_t>(output.stream));
  out.string(output.bytes);
  return out.take();
}

Output decode_output(std::string_view payload) {
  WireReader in(payload);
  Output output;
  output.rank = in.i32();
  output.stream = in.u8() == 0 ? OutputStream::out : OutputStream::err;
  output.bytes = in.string();
  in.finish();
  return output;
}

std::string encode_rank_message(const RankMessage& message) {
  WireWriter out;
  out.i32(message.rank);
  out.string(message.text);
  return out.take();
}

RankMessage decode_rank_message(std::string_view payload) {
  WireReader in(payload);
  RankMessage message;
  message.rank = in.i32();
  message.text = in.string();
  in.finish();
  return message;
}

std::string encode_exit(const Exit& exit) {
  WireWriter out;
  out.i32(exit.rank);
  out.i32(exit.wait_status);
  out.u8(static_cast<std::uint8_t>(exit.kill_cause));
  return out.take();
}

Exit decode_exit(std::string_view payload) {
  WireReader in(payload);
  Exit exit;
  exit.rank = in.i32();
  exit.wait_status = in.i32();
  exit.kill_cause = static_cast<KillCause>(std::min<std::uint8_t>(in.u8(), 4));
  in.finish();
  return exit;
}

}  // namespace dstrain::launcher
