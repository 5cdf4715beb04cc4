#include "cmd/dstrain/launch_bench.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fcntl.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/bench/summary.h"
#include "cmd/dstrain/tool_options.h"
#include "launcher/job/job_session.h"
#include "launcher/job/launch.h"
#include "launcher/plan/job_env.h"
#include "launcher/process/process.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/store/tcp_store.h"
#include "runtime/os/fd_io.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::cmd {
namespace {

constexpr const char* times_variable = "DSTRAIN_RENDEZVOUS_TIMES";  // the file of a run
constexpr int timeout_seconds = 120;

struct Settings {
  std::vector<int> hosts{1, 4, 16, 64, 256};
  int runs = 5;
  bool json = false;
};

/// Seconds, one entry per run.
struct Row {
  int hosts = 0;
  std::vector<double> met;    ///< until the last rank had met all others
  std::vector<double> ended;  ///< until nothing of the job was left
  std::vector<double> plain;  ///< to start two plain processes per host and wait for their end
};

std::optional<Settings> parse_settings(std::span<const std::string> arguments) {
  Settings settings;
  CLI::App app{
      "Measures a launch, from the launcher's start until all ranks have completed the rendezvous.",
      "dstrain bench launch"};
  app.add_option("--hosts", settings.hosts,
                 "numbers of simulated hosts with one rank each [1,4,16,64,256]")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  app.add_option("--runs", settings.runs, "runs of each number of hosts [5]")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--json", settings.json, "print one JSON object instead of a table");
  if (!parse_tool_options(app, arguments)) return std::nullopt;
  return settings;
}

/// The file in which ranks note when they have met. Removed also when a run fails.
class Notes {
 public:
  Notes() = default;
  ~Notes() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                fmt::format("dstrain-bench-{}", launcher::random_hex(8));
};

launcher::LaunchJob make_job(int hosts, const std::string& notes) {
  launcher::LaunchJob job;
  job.id = "bench-" + launcher::random_hex(6);
  job.version = DSTRAIN_VERSION;
  job.world_size = job.supervision.ranks = hosts;
  job.master_port.port = 29500;
  job.master_addr = "127.0.0.1";
  job.connect_seconds = timeout_seconds;
  job.log_level = "error";
  job.program = "bench launch";
  for (int rank = 0; rank < hosts; ++rank) {
    launcher::HostTask task{.host = fmt::format("host{}", rank), .remote = false, .spec = {}};
    launcher::JobSpec& spec = task.spec;
    spec.working_directory = "/";
    spec.command = {.program = launcher::own_path(),
                    .argv = {"dstrain", "meet"},
                    .local_rank_position = std::nullopt,
                    .daemon = false};
    spec.env = {{env::world_size, std::to_string(hosts)},
                {env::timeout, std::to_string(timeout_seconds)},
                {env::job, job.id},
                {env::token, job.id},
                {times_variable, notes}};
    spec.ranks = {{rank, 0, {{env::rank, std::to_string(rank)}, {env::local_world_size, "1"}}}};
    spec.slots = {0};
    spec.use_gpus = false;
    spec.output_window_bytes = 1U << 16;
    job.hosts.push_back(std::move(task));
  }
  return job;
}

/// Takes the times of one launch.
void time_launch(Row& row, const std::filesystem::path& notes) {
  std::ofstream(notes, std::ios::trunc).flush();
  const SteadyClock clock;
  const double begin = clock.now_seconds();
  const launcher::LaunchJob job = make_job(row.hosts, notes.string());
  launcher::JobSession session(job);
  const int status = launcher::run_job(job, session).status;
  row.ended.push_back(clock.now_seconds() - begin);
  if (status != status::done)
    fail(ErrorCode::remote, "bench launch: a run ended with status {}", status);
  std::ifstream times(notes);
  double last = 0;
  int ranks = 0;
  for (double time = 0; times >> time; ++ranks) last = std::max(last, time);
  if (ranks != row.hosts) fail(ErrorCode::internal, "{} of {} ranks met", ranks, row.hosts);
  row.met.push_back(last - begin);
}

/// The lower bound: starts the same program as often as a launch of so many hosts, to do nothing.
double time_processes(int count) {
  const UniqueFd null_fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
  launcher::ProcessSpec spec;
  spec.program = launcher::own_path();
  spec.argv = {"dstrain", "--version"};
  spec.stdout_fd = null_fd.get();
  sigemptyset(&spec.signal_mask);
  const SteadyClock clock;
  return bench::time_of(clock, [&] {
    std::vector<pid_t> started;
    for (int i = 0; i < count; ++i) {
      const Result<pid_t> pid = launcher::start_process(spec);
      if (!pid.ok()) fail(ErrorCode::remote, "bench launch: {}", pid.error());
      started.push_back(pid.value());
    }
    for (const pid_t pid : started) ::waitpid(pid, nullptr, 0);
  });
}

std::string as_table(const std::vector<Row>& rows, int runs) {
  std::string text = fmt::format(
      "A launch over simulated hosts of one rank: medians of {} runs, {}\n"
      "met: until the last rank has met all others; ended: until no process is left; plain: time\n"
      "to start the program twice per host, as agent and rank, to do nothing\n\n"
      "{:>8}{:>12}{:>12}{:>12}{:>12}{:>14}\n",
      runs, bench::describe_machine(), "hosts", "met, s", "p95, s", "ended, s", "plain, s",
      "met / plain");
  for (const Row& row : rows) {
    const bench::Summary met = bench::summarize(row.met);
    const double plain = bench::summarize(row.plain).median;
    text +=
        fmt::format("{:>8}{:>12.3f}{:>12.3f}{:>12.3f}{:>12.3f}{:>14.2f}\n", row.hosts, met.median,
                    met.p95, bench::summarize(row.ended).median, plain, met.median / plain);
  }
  return text;
}

std::string as_json(const std::vector<Row>& rows, int runs) {
  nlohmann::json json{{"bench", "launch"}, {"machine", bench::describe_machine()}, {"runs", runs}};
  for (const Row& row : rows) {
    json["results"].push_back({{"hosts", row.hosts},
                               {"met_seconds", bench::to_json(bench::summarize(row.met))},
                               {"ended_seconds", bench::to_json(bench::summarize(row.ended))},
                               {"plain_seconds", bench::to_json(bench::summarize(row.plain))}});
  }
  return json.dump() + "\n";
}

}  // namespace

int launch_bench_command(std::span<const std::string> arguments) {
  const std::optional<Settings> settings = parse_settings(arguments);
  if (!settings) return status::done;
  const Notes notes;
  std::vector<Row> rows;
  for (const int hosts : settings->hosts) {
    Row& row = rows.emplace_back();
    row.hosts = hosts;
    for (int run = 0; run < settings->runs; ++run) {
      time_launch(row, notes.path());
      row.plain.push_back(time_processes(2 * hosts));
    }
  }
  fmt::print("{}", settings->json ? as_json(rows, settings->runs) : as_table(rows, settings->runs));
  return status::done;
}

int meet_command(std::span<const std::string> /*arguments*/) {
  const char* const notes = std::getenv(times_variable);
  if (notes == nullptr) fail(ErrorCode::usage, "dstrain meet: only bench launch starts this");
  const WorkerEnv worker = read_worker_env();
  comm::TcpStore::Options options{.endpoint = {worker.master_addr, worker.master_port},
                                  .token = worker.token,
                                  .timeout_seconds = worker.timeout_seconds};
  const auto store = worker.rank == 0 ? comm::TcpStore::serve(std::move(options))
                                      : comm::TcpStore::connect(std::move(options));
  comm::wait_for_all(*store, {.rank = worker.rank,
                              .world_size = worker.world_size,
                              .timeout_seconds = worker.timeout_seconds});
  const std::string note = fmt::format("{:.6f}\n", SteadyClock().now_seconds());
  const UniqueFd file(::open(notes, O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!file) fail_errno(errno, fmt::format("open {}", notes));
  write_fully(file.get(), std::as_bytes(std::span(note)), notes);
  // Rank 0 owns the store and keeps it until all have met.
  if (store->add("met", 1, worker.timeout_seconds) == worker.world_size) store->set("all met", "");
  if (worker.rank == 0) store->get("all met", worker.timeout_seconds);
  return status::done;
}

}  // namespace dstrain::cmd
