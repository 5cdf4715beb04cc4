#include "tests/fault/hang_round.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <optional>
#include <regex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/os/file.h"
#include "tests/fault/swapping_run.h"
#include "tests/net/two_nodes.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* alarm_words = "no rank has made progress for ";
/// Short: a save, and a job that has not been watched for long, is waited for twenty times as long.
constexpr double least_seconds = 0.3;
/// A multiple of the longest that a watch may wait in a job that never stood still before.
constexpr double alarm_seconds_max = 10 * 20 * least_seconds;

/// A way in which odd_rank does otherwise, and what is said of it. The communicator finds some, by
/// comparing what the ranks do, and the watch the rest.
struct OddWay {
  const char* name;
  const char* error;  ///< what the rank does, as an error says it; empty: it is an alarm
};
constexpr std::array<OddWay, 4> mismatches{{{"size", "all_reduce of 6 f32"},
                                            {"vote", ""},
                                            {"operation", "reduce_scatter of 12 f32"},
                                            {"order", "all_gather of "}}};
constexpr std::array<OddWay, 3> skips{
    {{"skip_vote", ""}, {"skip_sum", "all_gather of "}, {"skip_compute", ""}}};

const OddWay* odd_way_of(const HangRound& round) {
  const auto variant = static_cast<std::size_t>(round.variant);
  if (round.fault == HangFault::mismatch) return &mismatches.at(variant);
  if (round.fault == HangFault::skip) return &skips.at(variant);
  return nullptr;
}

int variants_of(HangFault fault) {
  switch (fault) {
    case HangFault::disk:
    case HangFault::deaf:
      return 2;
    case HangFault::mismatch:
      return static_cast<int>(mismatches.size());
    case HangFault::skip:
      return static_cast<int>(skips.size());
    default:
      return 1;
  }
}

bool is_of_network(HangFault fault) {
  return fault == HangFault::cut || fault == HangFault::deaf;
}

bool is_swapping(const HangRound& round) {
  return round.fault == HangFault::disk && round.variant == 0;
}

int first_of_second_host(const HangRound& round) {
  return (round.ranks + 1) / 2;
}

std::string host_of(const HangRound& round) {
  if (!round.two_hosts) return "localhost";
  return round.rank < first_of_second_host(round) ? "w0" : "w1";
}

/// What a launch needs beside its command, and what it leaves.
struct Stage {
  TempDir folder;
  std::optional<TwoNodes> network;
  [[nodiscard]] fs::path path(const char* name) const { return folder.path() / name; }
};

/// In place of ssh: runs the command on this machine, on a node of the network where there is one.
/// A shell reads it: a launch beside this one may fork while it is being written, and a program
/// that is open for writing cannot be started.
void write_client(const Stage& stage) {
  std::string script = "cd /\ncase $1 in\n";
  for (const int node : {0, 1}) {
    std::vector<std::string> words{"exec"};
    const std::vector<std::string> shell{"sh", "-c", "\"$2\""};
    const auto command = stage.network ? stage.network->on(node, shell) : shell;
    words.insert(words.end(), command.begin(), command.end());
    script += fmt::format("  w{}) {} ;;\n", node, fmt::join(words, " "));
  }
  write_text_file(stage.path("client"), script + "esac\n");
}

std::vector<std::string> launch_words(const HangRound& round, const Stage& stage) {
  if (!round.two_hosts) return {"--num_gpus", std::to_string(round.ranks), "--oversubscribe"};
  write_client(stage);
  const int second = first_of_second_host(round);
  write_text_file(stage.path("hosts"),
                  fmt::format("w0 slots={}\nw1 slots={}\n", second, round.ranks - second));
  return {"--oversubscribe",
          "-H",
          stage.path("hosts"),
          "--ssh_command",
          fmt::format("sh {}", stage.path("client").string()),
          "--master_addr",
          stage.network ? TwoNodes::address(0) : "127.0.0.1"};
}

std::vector<std::string> command_of(const HangRound& round, const Stage& stage) {
  ResumableRun run{.ranks = round.ranks, .stage = round.stage};
  if (is_swapping(round)) {
    fs::create_directory(stage.path("disk"));
    run = swapping_run(stage.path("disk"));
    run.ranks = round.ranks;
    run.micro_batch = 0;
  }
  std::vector<std::string> extra;
  if (round.fault == HangFault::disk && !is_swapping(round)) extra = {"--save_steps", "20"};
  const std::vector<std::string> trains = run.endless(stage.path("out"), extra);
  std::vector<std::string> words = launch_words(round, stage);
  words.insert(words.end(), trains.begin() + 2, trains.end());  // all but --num_gpus N
  return words;
}

/// What makes the fault library, or odd_rank, fail.
std::vector<launcher::EnvVar> faults_of(const HangRound& round, const Stage& stage) {
  if (const OddWay* const way = odd_way_of(round)) {
    return {{"ODD_WAY", way->name},
            {"ODD_RANK", std::to_string(round.rank)},
            {"ODD_STEP", std::to_string(round.step)}};
  }
  if (round.fault != HangFault::spin && round.fault != HangFault::disk) return {};
  std::vector<launcher::EnvVar> faults{{"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY},
                                       {"DSTRAIN_FAULT_RANK", std::to_string(round.rank)},
                                       {"DSTRAIN_FAULT_LOG", stage.path("calls")},
                                       {"DSTRAIN_IO", "threads"}};
  if (round.fault == HangFault::spin) {  // where a rank tells of its step
    faults.push_back({"DSTRAIN_FAULT", fmt::format("send:{}:spin", round.step)});
    faults.push_back({"DSTRAIN_FAULT_FILES", "progress "});
  } else if (is_swapping(round)) {
    faults.push_back({"DSTRAIN_FAULT", fmt::format("read:{}:hang", 20 * round.step)});
    faults.push_back({"DSTRAIN_FAULT_FILES", stage.path("disk")});
  } else {
    // The flushes before it are those of the trial save: a file, and directories of rank 0.
    faults.push_back({"DSTRAIN_FAULT", round.rank == 0 ? "fsync:4:hang" : "fsync:2:hang"});
  }
  return faults;
}

Launch::Options options_of(const HangRound& round, const Stage& stage) {
  Launch::Options options{.env = {{"DSTRAIN_HANG", fmt::format("{}", least_seconds)},
                                  {"XDG_RUNTIME_DIR", stage.folder.path()},
                                  {"OMP_NUM_THREADS", "1"}},
                          .directory = golden_folder};
  const auto faults = faults_of(round, stage);
  options.env.insert(options.env.end(), faults.begin(), faults.end());
  if (odd_way_of(round) == nullptr) return options;
  // A launcher beside which another program is dstraind. The shell copies it: a file that another
  // thread's child still has open for writing cannot be run.
  fs::create_symlink(DSTRAIN_ODD_RANK, stage.path("dstraind"));
  const fs::path programs = fs::path(DSTRAIN_PROGRAM).parent_path();
  fs::create_symlink(programs / "libdstrain_core.so", stage.path("libdstrain_core.so"));
  const std::string copy = stage.path("dstrain");
  options.wrapper = {"/bin/sh", "-c", fmt::format("cp \"$1\" {0}; shift; exec {0} \"$@\"", copy),
                     "sh"};
  return options;
}

/// Waits until the fault is there, or makes it; false when the launch ends before.
bool strike(const HangRound& round, const Stage& stage, Launch& launch) {
  switch (round.fault) {
    case HangFault::spin:
    case HangFault::disk:
      return launch.wait_until([&] {
        return fs::exists(stage.path("calls")) &&
               read_bytes(stage.path("calls")).find(" struck\t") != std::string::npos;
      });
    case HangFault::mismatch:
    case HangFault::skip:
      return launch.wait_for_output("struck");
    default:
      break;
  }
  if (!launch.wait_for_output(fmt::format("step {}/", round.step))) return false;
  if (round.fault == HangFault::stop) {
    const pid_t pid = rank_pid(launch, round.rank);
    return pid != 0 && ::kill(pid, SIGSTOP) == 0;
  }
  if (round.fault == HangFault::cut) stage.network->cut();
  if (round.fault == HangFault::deaf) stage.network->deafen(round.rank == 0 ? 0 : 1);
  return true;
}

/// A regular expression of some ranks of a host, "ranks 2 3": what was on its way may have reached
/// the others before nothing did any more.
std::string ranks_of_host(const HangRound& round) {
  const int second = first_of_second_host(round);
  const int begin = round.rank < second ? 0 : second;
  const int end = round.rank < second ? second : round.ranks;
  std::vector<int> ranks(static_cast<std::size_t>(end - begin));
  std::iota(ranks.begin(), ranks.end(), begin);
  return fmt::format("ranks?( ({}))+", fmt::join(ranks, "|"));
}

/// A regular expression of what must be said.
std::string expected_words(const HangRound& round) {
  const std::string line =
      fmt::format("\n  rank {} \\(host {}, pid \\d+\\), ", round.rank, host_of(round));
  const std::string missing =
      fmt::format("rank {} is missing in collective \\d+, .*{}", round.rank, line);
  const std::string all_in_one =
      "no rank is missing in collective \\d+, .*: check the network between them"
      "\n  rank 0 \\(host w0, [\\s\\S]*?\\(host w1, ";
  const OddWay* const way = odd_way_of(round);
  if (way != nullptr && *way->error != '\0') {
    return fmt::format("collective \\d+: the ranks disagree: .*rank {} does {}", round.rank,
                       way->error);
  }
  switch (round.fault) {
    case HangFault::stop:
      return fmt::format("rank {} is (missing|stopped) in collective \\d+, .*{}stopped: step \\d+",
                         round.rank, line);
    case HangFault::spin:
      return missing + "running: step \\d+";
    case HangFault::disk:
      if (is_swapping(round)) return missing + "asleep: step \\d+";
      return fmt::format("rank {} does not make progress with a checkpoint{}asleep: ", round.rank,
                         line);
    case HangFault::mismatch:
      if (round.ranks == 2)
        return "the ranks disagree in collective \\d+, and no side[\\s\\S]*?" + line;
      return fmt::format("the ranks disagree: rank {} does something else than the others{}",
                         round.rank, " in collective \\d+, .*" + line);
    case HangFault::skip:  // one that waits for the others wakes up now and then
      return fmt::format("rank {} has skipped a collective.*{}{}", round.rank, line,
                         round.variant == 0 ? "(asleep|running): step " : "running: step ");
    case HangFault::cut:
      return fmt::format("({}|ranks? .* still in a collective that the others have left)",
                         all_in_one);
    case HangFault::deaf:
      return fmt::format(
          "({}|{} (is|are) still in a collective that the others have left.*"
          "\n  rank \\d+ \\(host {}, pid \\d+\\), )",
          all_in_one, ranks_of_host(round), host_of(round));
  }
  return "";
}

/// The last alarm, unless the job has moved since; empty: there is none.
std::string standing_alarm(const std::string& err) {
  const std::size_t at = err.rfind(alarm_words);
  if (at == err.npos || err.find("the job makes progress again", at) != err.npos) return "";
  return err.substr(at);
}

std::string first_line(const std::string& text, const std::string& part) {
  const std::size_t at = text.find(part);
  return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
}

/// Of an alarm that the watch gives.
void await_alarm(const std::regex& expected, Launch& launch, HangReport& report) {
  const auto named = [&] {
    return std::regex_search(standing_alarm(launch.err()), expected);
  };
  launch.wait_until([&] {
    return named() || standing_alarm(launch.err()).find("\nstacks of ") != std::string::npos;
  });
  report.headline = first_line(standing_alarm(launch.err()), alarm_words);
  if (!named()) report.problem = "another alarm or none";
  const double seconds =
      report.headline.empty() ? 0 : std::stod(report.headline.substr(std::strlen(alarm_words)));
  if (seconds > alarm_seconds_max) report.problem = "an alarm that came late";
}

/// Of an error with which all ranks end.
void await_error(const std::regex& expected, Launch& launch, HangReport& report) {
  const int status = launch.wait();
  report.headline = first_line(launch.err(), "the ranks disagree");
  if (!std::regex_search(launch.err(), expected)) report.problem = "another error";
  if (status != 1) report.problem = fmt::format("status {}", status);
}

}  // namespace

const char* name_of(HangFault fault) {
  constexpr std::array<const char*, 7> names{"stop", "spin", "disk", "mismatch",
                                             "skip", "cut",  "deaf"};
  return names.at(static_cast<std::size_t>(fault));
}

HangRound random_round(HangFault fault, int variant, std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<unsigned>(limit));
  };
  HangRound round{.fault = fault, .variant = variant % variants_of(fault), .ranks = 2 + below(3)};
  round.two_hosts = is_of_network(fault) || below(2) == 0;
  round.rank = below(round.ranks);
  if (is_of_network(fault)) round.rank = round.variant == 0 ? first_of_second_host(round) : 0;
  round.step = 5 + below(100);
  round.stage = below(4);
  return round;
}

std::string to_string(const HangRound& round) {
  return fmt::format("{} {}, rank {} of {} on {}, step {}, stage {}", name_of(round.fault),
                     round.variant, round.rank, round.ranks, host_of(round), round.step,
                     round.stage);
}

HangReport play(const HangRound& round) {
  HangReport report;
  Stage stage;
  if (is_of_network(round.fault)) stage.network.emplace();
  Launch launch(command_of(round, stage), options_of(round, stage));
  const std::string words = expected_words(round);
  const std::regex expected(words);
  if (strike(round, stage, launch)) {
    report.early_alarms = count_in(launch.err(), alarm_words);
    const OddWay* const way = odd_way_of(round);
    const bool ends = way != nullptr && *way->error != '\0';
    ends ? await_error(expected, launch, report) : await_alarm(expected, launch, report);
  } else {
    report.problem = "it ended before the fault";
  }
  if (!report.problem.empty()) report.problem += "; not said: " + words;
  report.said = launch.err();
  return report;
}

}  // namespace dstrain::test
