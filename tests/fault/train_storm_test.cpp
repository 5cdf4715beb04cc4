// Small trainings of every kind, on one node and over the network of two, each disturbed at random
// until it is done: killed, stopped, suspended, with a full or a slow disk, and with signals
// ignored or blocked by whoever starts it. It ends with the bits of one that nobody has disturbed,
// and leaves nothing. DSTRAIN_TRAIN_STORM sets for how many seconds new ones are begun,
// DSTRAIN_TRAIN_STORM_SEED the order of events.
#include <array>
#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "tests/fault/swapping_run.h"
#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

constexpr int steps = 60;
constexpr int disturbed_launches = 4;  // of a training, at most; then it is left alone
constexpr int launches_max = 8;
constexpr int timeout_seconds = 20;

struct Training {
  int stage = 0;
  bool bf16 = false;
  bool offload = false;
  bool two_nodes = false;

  [[nodiscard]] std::string name() const {
    return fmt::format("stage {}{}{}", stage, bf16 ? " bf16" : "", offload ? " offload" : "");
  }
};

Training random_training(std::mt19937& random, bool has_nodes) {
  Training training;
  training.stage = static_cast<int>(random() % 4);
  training.bf16 = random() % 2 == 0;
  training.offload = training.stage > 0 && random() % 2 == 0;
  training.two_nodes = has_nodes && random() % 2 == 0;
  return training;
}

/// What a launch finds where it is started.
struct Surroundings {
  std::vector<launcher::EnvVar> faults{};
  Words starter{};  ///< a command line that runs another
};

/// The launches of a training: a launcher for all ranks, or one for the rank of each node.
class Job {
 public:
  Job(const Training& training,
      const std::filesystem::path& output,
      const test::TwoNodes* nodes,
      const Surroundings& surroundings = {}) {
    const Words words = command(training, output);
    Launch::Options options{.env = surroundings.faults, .directory = test::golden_folder.string()};
    options.env.push_back({"OMP_NUM_THREADS", "1"});
    options.env.push_back({"DSTRAIN_TOKEN", "of the storm"});
    for (int node = 0; node < (training.two_nodes ? 2 : 1); ++node) {
      Words all{"--num_gpus", training.two_nodes ? "1" : "2", "--timeout",
                std::to_string(timeout_seconds)};
      options.wrapper = surroundings.starter;
      if (training.two_nodes) {
        options.wrapper = nodes->on(node, surroundings.starter);
        for (const std::string& word :
             {std::string("--no_ssh"), std::string("--num_nodes"), std::string("2"),
              std::string("--node_rank"), std::to_string(node), std::string("--master_addr"),
              test::TwoNodes::address(0)}) {
          all.push_back(word);
        }
      }
      all.insert(all.end(), words.begin(), words.end());
      launches_.push_back(std::make_unique<Launch>(all, options));
    }
  }

  Launch& any(std::mt19937& random) { return *launches_[random() % launches_.size()]; }
  /// As a batch system or a laptop's lid does, for longer than anybody waits for another.
  void suspend() {
    for (const auto& launch : launches_) launch->signal_all(SIGSTOP);
    test::wait_for_end(launches_.front()->pid(), Deadline::after(timeout_seconds + 2));
    for (const auto& launch : launches_) launch->signal_all(SIGCONT);
  }
  /// Whether all have ended well, and nothing is left of them.
  struct End {
    bool done = true;
    bool clean = true;
    std::string said;
  };
  End end() {
    End end;
    for (const auto& launch : launches_) {
      const int status = launch->wait();
      end.done &= status == 0;
      end.said += fmt::format("status {}\n{}", status, launch->err());
    }
    for (const auto& launch : launches_) end.clean &= launch->nothing_left();
    return end;
  }

 private:
  static Words command(const Training& training, const std::filesystem::path& output) {
    test::ResumableRun run{.ranks = 2, .stage = training.stage, .bf16 = training.bf16};
    if (training.offload) run.zero["offload_optimizer"] = {{"device", "cpu"}};
    std::filesystem::create_directories(output);
    const std::string config = output.string() + ".json";
    std::ofstream(config) << run.config().dump();
    Words words{"train",
                "--output_dir",
                output.string(),
                "--deepspeed",
                config,
                "--logging_steps",
                "1",
                "--save_total_limit",
                "2"};
    for (const std::string& word : run.arguments(steps)) words.push_back(word);
    words.insert(words.end(), {"--save_steps", "5"});
    if (checkpoint::list_checkpoints(output).empty()) {
      words.emplace_back("--overwrite_output_dir");
    } else {
      words.insert(words.end(), {"--resume_from_checkpoint", "latest"});
    }
    return words;
  }

  std::vector<std::unique_ptr<Launch>> launches_;
};

/// What a training leaves behind.
struct TrainedBits {
  std::string model;
  std::vector<std::string> rows;
};

TrainedBits result_in(const std::filesystem::path& output) {
  return {test::read_bytes(output / "model.safetensors"), test::results_in(output)};
}

TrainedBits undisturbed(Training training) {
  const test::TempDir folder;
  training.two_nodes = false;
  const std::filesystem::path output = folder.path() / "out";
  const Job::End end = Job(training, output, nullptr).end();
  CAPTURE(training.name(), end.said);
  REQUIRE(end.done);
  return result_in(output);
}

/// The launcher, the agent or a rank of one of the launches; 0: it is not there.
pid_t random_victim(Launch& launch, std::mt19937& random, std::string& name) {
  switch (random() % 3) {
    case 0:
      name = "launcher";
      return launch.pid();
    case 1:
      name = "agent";
      return launch.agent_pid();
    default:
      name = "rank";
      for (const int rank : {static_cast<int>(random() % 2), 0, 1}) {
        if (const pid_t pid = test::rank_pid(launch, rank)) return pid;
      }
      return 0;
  }
}

/// What was done, for the table at the end. A process that is stopped goes on, but every other rank
/// that has peers under its launcher: nobody else could end the job.
std::string strike(Launch& launch, const Training& training, std::mt19937& random) {
  constexpr std::array signals{SIGKILL, SIGTERM, SIGSTOP};
  test::wait_for_random_moment(launch.pid(), random, 2000);
  std::string name;
  const int signal = signals[random() % signals.size()];
  const pid_t pid = random_victim(launch, random, name);
  if (pid == 0 || launch.has_ended()) return "too late";
  ::kill(pid, signal);
  const bool goes_on = name != "rank" || training.two_nodes || random() % 2 == 0;
  if (signal == SIGSTOP && goes_on) {
    test::wait_for_random_moment(pid, random, 500);
    ::kill(pid, SIGCONT);
  }
  return fmt::format("{} {}", launcher::signal_name(signal), name);
}

std::vector<launcher::EnvVar> faulty_disk(const std::string& fault) {
  return {{"LD_PRELOAD", DSTRAIN_FAULT_LIBRARY}, {"DSTRAIN_FAULT", fault}};
}

/// Starts what follows with signals ignored and others blocked, as supervisors and cron do.
Words careless_starter(std::mt19937& random) {
  constexpr std::array names{"CHLD", "PIPE", "TERM", "INT", "USR1", "ALRM", "CONT"};
  const char* const ignored = names[random() % names.size()];
  const char* const blocked = names[random() % names.size()];
  return {"/usr/bin/env", fmt::format("--ignore-signal=CHLD,{}", ignored),
          fmt::format("--block-signal={}", blocked)};
}

/// What disturbs a launch of a job.
enum class Disturbance { none, full_disk, suspension, strike };

Disturbance random_disturbance(std::mt19937& random) {
  switch (random() % 12) {
    case 0:
    case 1:
      return Disturbance::full_disk;
    case 2:
      return Disturbance::suspension;
    default:
      return Disturbance::strike;
  }
}

Surroundings random_surroundings(Disturbance disturbance, std::mt19937& random) {
  Surroundings found;
  if (disturbance == Disturbance::full_disk) {
    found.faults = faulty_disk(fmt::format("write:{}+:{}", 1 + random() % 40, ENOSPC));
  } else if (random() % 3 == 0) {
    found.faults = faulty_disk("sync_file_range:1+:slow");
  }
  if (random() % 3 == 0) found.starter = careless_starter(random);
  return found;
}

/// Disturbs a job while it runs. Returns what was done, for the table at the end.
std::string disturb(Job& job,
                    Disturbance disturbance,
                    const Training& training,
                    std::mt19937& random) {
  switch (disturbance) {
    case Disturbance::none:
      return "none";
    case Disturbance::full_disk:
      return "full disk";
    case Disturbance::suspension:
      test::wait_for_random_moment(job.any(random).pid(), random, 2000);
      job.suspend();
      return "suspension";
    case Disturbance::strike:
      break;
  }
  return strike(job.any(random), training, random);
}

using Counts = std::map<std::string, int>;

/// Trains until it is done.
void finish(const Training& training,
            const std::filesystem::path& output,
            const test::TwoNodes* nodes,
            std::mt19937& random,
            Counts& counts) {
  for (int number = 0; number < launches_max; ++number) {
    const Disturbance disturbance =
        number < disturbed_launches ? random_disturbance(random) : Disturbance::none;
    const Surroundings surroundings = random_surroundings(disturbance, random);
    Job job(training, output, nodes, surroundings);
    const std::string fault = disturb(job, disturbance, training, random);
    const Job::End end = job.end();
    CAPTURE(number, fault, surroundings.starter, surroundings.faults.size(), end.said);
    ++counts[fault];
    if (!surroundings.starter.empty()) ++counts["with signals ignored and blocked"];
    if (disturbance != Disturbance::full_disk && !surroundings.faults.empty()) {
      ++counts["with a slow disk"];
    }
    REQUIRE(end.clean);
    if (end.done) return;
    // Nobody has ended it: it ends by itself.
    REQUIRE(disturbance != Disturbance::none);
    REQUIRE(disturbance != Disturbance::suspension);
  }
  FAIL("not done after so many launches");
}

}  // namespace

TEST_CASE("Train storm: every training ends with the bits of an undisturbed one",
          "[fault][storm]") {
  const unsigned seed =
      static_cast<unsigned>(test::count_from("DSTRAIN_TRAIN_STORM_SEED", 20'261'126));
  std::mt19937 random(seed);
  std::unique_ptr<test::TwoNodes> nodes;
  if (!test::TwoNodes::refusal()) nodes = std::make_unique<test::TwoNodes>();
  std::map<std::string, TrainedBits> expected;
  Counts counts;
  int trainings = 0;
  const Deadline last = Deadline::after(test::count_from("DSTRAIN_TRAIN_STORM", 600));
  for (; trainings == 0 || !last.passed(); ++trainings) {
    const Training training = random_training(random, nodes != nullptr);
    CAPTURE(seed, trainings, training.name(), training.two_nodes);
    if (!expected.contains(training.name())) expected[training.name()] = undisturbed(training);
    const test::TempDir folder;
    finish(training, folder.path() / "out", nodes.get(), random, counts);
    const TrainedBits result = result_in(folder.path() / "out");
    CHECK(result.rows == expected[training.name()].rows);
    CHECK((result.model == expected[training.name()].model));
    counts[training.two_nodes ? "trainings on two nodes" : "trainings on one node"] += 1;
  }
  for (const auto& [what, times] : counts) fmt::print("{}: {}\n", what, times);
}
