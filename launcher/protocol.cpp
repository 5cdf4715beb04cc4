#include "launcher/protocol.h"

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

std::string encode_job(const JobSpec& job) {
  WireWriter out;
  out.string(job.working_directory);
  out.string(job.command.program);
  put_strings(out, job.command.argv);
  const auto position = job.command.local_rank_position;
  out.u32(position ? static_cast<std::uint32_t>(*position) : no_position);
  put_env(out, job.env);
  out.count(job.ranks.size());
  for (const RankSpec& rank : job.ranks) {
    out.i32(rank.rank);
    out.i32(rank.local_rank);
    put_env(out, rank.env);
  }
  put_strings(out, job.log_files);
  return out.take();
}

JobSpec decode_job(std::string_view payload) {
  WireReader in(payload);
  JobSpec job;
  job.working_directory = in.string();
  job.command.program = in.string();
  job.command.argv = get_strings(in);
  const std::uint32_t position = in.u32();
  if (position != no_position) job.command.local_rank_position = position;
  job.env = get_env(in);
  job.ranks.resize(in.count(12));
  for (RankSpec& rank : job.ranks) {
    rank.rank = in.i32();
    rank.local_rank = in.i32();
    rank.env = get_env(in);
  }
  job.log_files = get_strings(in);
  in.finish();
  const bool logs_fit = job.log_files.empty() || job.log_files.size() == job.ranks.size();
  const std::size_t insert_at = job.command.local_rank_position.value_or(0);
  if (job.ranks.empty() || !logs_fit || insert_at > job.command.argv.size()) {
    fail(ErrorCode::remote, "agent protocol: the job does not fit together");
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
  out.u8(static_cast<std::uint8_t>(exit.oom));
  return out.take();
}

Exit decode_exit(std::string_view payload) {
  WireReader in(payload);
  Exit exit;
  exit.rank = in.i32();
  exit.wait_status = in.i32();
  exit.oom = static_cast<OomVerdict>(std::min<std::uint8_t>(in.u8(), 3));
  in.finish();
  return exit;
}

}  // namespace dstrain::launcher
