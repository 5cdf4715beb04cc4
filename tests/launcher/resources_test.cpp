#include "launcher/plan/resources.h"

#include <numeric>

#include "launcher/plan/job_env.h"
#include "runtime/base/error.h"
#include "runtime/os/control_groups.h"
#include "tests/support/catch.h"

using namespace dstrain;
using launcher::HostEntry;
using launcher::HostPlan;
using launcher::HostSlots;
using launcher::LaunchOptions;
using launcher::Machine;

namespace {

using AllSlots = std::vector<launcher::HostSlots>;
using Words = std::vector<std::string>;

const Machine cpu_box{"box", 4, 0, std::nullopt};
const Machine gpu_box{"box", 64, 4, std::nullopt};

LaunchOptions typed(std::vector<std::string> words) {
  words.emplace_back("train");
  return launcher::parse_command_line(words).options;
}

launcher::Resources resolve(const LaunchOptions& options,
                            const Machine& machine,
                            const std::optional<std::vector<HostEntry>>& hostfile,
                            launcher::RankDevice device = launcher::RankDevice::any) {
  return launcher::resolve_resources(options, machine, {hostfile, std::nullopt}, device);
}

AllSlots hosts(const std::vector<std::string>& words,
               const Machine& machine,
               const std::optional<std::vector<HostEntry>>& hostfile = std::nullopt) {
  return resolve(typed(words), machine, hostfile).plan.hosts();
}

std::string error_of(const std::vector<std::string>& words,
                     const Machine& machine,
                     const std::optional<std::vector<HostEntry>>& hostfile = std::nullopt) {
  try {
    hosts(words, machine, hostfile);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Resources: slots of this machine without a hostfile", "[launcher]") {
  CHECK(hosts({}, cpu_box) == AllSlots{{"localhost", {0}}});
  CHECK(hosts({"--num_gpus", "2"}, cpu_box) == AllSlots{{"localhost", {0, 1}}});
  CHECK(hosts({"-i", "localhost:1,3"}, cpu_box) == AllSlots{{"localhost", {1, 3}}});
  CHECK(hosts({"-i", "localhost"}, cpu_box) == AllSlots{{"localhost", {0, 1, 2, 3}}});
  CHECK(hosts({"-e", "localhost:1"}, cpu_box) == AllSlots{{"localhost", {0, 2, 3}}});
  CHECK(hosts({}, gpu_box) == AllSlots{{"localhost", {0, 1, 2, 3}}});
  CHECK(hosts({"--device", "cpu"}, gpu_box) == AllSlots{{"localhost", {0}}});
  CHECK(hosts({"--num_nodes", "1"}, gpu_box) == AllSlots{{"localhost", {0, 1, 2, 3}}});
}

TEST_CASE("Resources: slots are the entries of CUDA_VISIBLE_DEVICES", "[launcher]") {
  using Catch::Matchers::ContainsSubstring;
  Machine machine = gpu_box;
  machine.visible_gpus = "3,2";
  CHECK(launcher::gpu_slots(machine) == Words{"3", "2"});
  CHECK(launcher::gpu_slots(gpu_box) == Words{"0", "1", "2", "3"});
  const AllSlots both{{"localhost", {0, 1}}};
  CHECK(hosts({}, machine) == both);
  CHECK(hosts({"--num_gpus", "2"}, machine) == both);
  CHECK(hosts({"-i", "localhost"}, machine) == both);
  CHECK(hosts({"-e", "localhost:1"}, machine) == AllSlots{{"localhost", {0}}});
  const std::vector<HostEntry> file{{"box", 2}, {"w1", 4}};
  CHECK(resolve(typed({}), machine, file).warnings.empty());
  const Words words = GENERATE(Words{"--num_gpus", "3"}, Words{"-H", "f"});
  const std::vector<HostEntry> three{{"localhost", 3}};
  CHECK_THAT(error_of(words, machine, words.front() == "-H" ? std::optional(three) : std::nullopt),
             ContainsSubstring("slot 2: CUDA_VISIBLE_DEVICES=3,2 shows 2 GPUs, and slot k is entry "
                               "k of it, from 0"));
  machine.visible_gpus = GENERATE("", "-1", "-1,0");
  CHECK(hosts({}, machine) == AllSlots{{"localhost", {0}}});
}

TEST_CASE("Resources: a hint says that slots index CUDA_VISIBLE_DEVICES", "[launcher]") {
  using Catch::Matchers::ContainsSubstring;
  Machine machine = gpu_box;
  machine.visible_gpus = "1,2,3";
  CHECK_THAT(error_of({"-i", "localhost:3"}, machine),
             ContainsSubstring("no slot 3 on host \"localhost\"; it has 3 slots, and slot k is "
                               "entry k of CUDA_VISIBLE_DEVICES=1,2,3, from 0"));
  const auto warnings = [&](const Words& words) {
    return resolve(typed(words), machine, {}).warnings;
  };
  const std::vector<std::string> selected =
      GENERATE(Words{"-i", "localhost:1,2"}, Words{"-e", "localhost:0"});
  REQUIRE(warnings(selected).size() == 1);
  CHECK_THAT(warnings(selected).front(),
             ContainsSubstring("CUDA_VISIBLE_DEVICES=1,2,3: the ranks here use GPU 2,3"));
  CHECK(warnings({"--num_gpus", "2"}).empty());
  machine.visible_gpus = "0,1,2";
  CHECK(warnings(selected).empty());
}

TEST_CASE("Resources: UUIDs in CUDA_VISIBLE_DEVICES are the slots", "[launcher]") {
  Machine machine = gpu_box;
  machine.visible_gpus = "GPU-5f,MIG-07,GPU-a1";
  CHECK(hosts({}, machine) == AllSlots{{"localhost", {0, 1, 2}}});
  CHECK(hosts({"-e", "localhost:1"}, machine) == AllSlots{{"localhost", {0, 2}}});
  const auto two = resolve(typed({"--num_gpus", "2"}), machine, {});
  CHECK(two.plan.hosts() == AllSlots{{"localhost", {0, 1}}});
  CHECK(two.warnings.empty());
  CHECK_THAT(error_of({"--num_gpus", "4"}, machine),
             Catch::Matchers::ContainsSubstring("shows 3 GPUs"));
  CHECK(resolve(typed({"-i", "localhost:1"}), machine, {}).warnings.empty());
}

TEST_CASE("Resources: CUDA_VISIBLE_DEVICES must list existing GPUs", "[launcher]") {
  using Catch::Matchers::ContainsSubstring;
  Machine machine = gpu_box;
  machine.visible_gpus = "0,4";
  const Words words = GENERATE(Words{}, Words{"--num_gpus", "1"}, Words{"-i", "localhost:0"});
  CHECK_THAT(error_of(words, machine),
             ContainsSubstring("there is no GPU 4: 4 GPUs are there, 0 to 3"));
  CHECK_THAT(error_of({}, machine, std::vector<HostEntry>{{"box", 1}}),
             ContainsSubstring("no GPU 4"));
  // Of no matter where slots are CPU ranks, or others than this machine's.
  CHECK(error_of({"--device", "cpu"}, machine).empty());
  CHECK(error_of({}, machine, std::vector<HostEntry>{{"w1", 1}}).empty());
}

TEST_CASE("Resources: a hostfile of this machine", "[launcher]") {
  const std::vector<HostEntry> file{{"localhost", 3}};
  CHECK(hosts({}, cpu_box, file) == AllSlots{{"localhost", {0, 1, 2}}});
  CHECK(hosts({"--num_gpus", "2"}, cpu_box, file) == AllSlots{{"localhost", {0, 1}}});
  CHECK(hosts({"-i", "localhost:0,2"}, cpu_box, file) == AllSlots{{"localhost", {0, 2}}});
  const std::vector<HostEntry> mixed{{"box", 2}, {"worker-1", 2}};
  CHECK(hosts({"--num_nodes", "1"}, cpu_box, mixed) == AllSlots{{"box", {0, 1}}});
  CHECK(hosts({"-e", "worker-1"}, cpu_box, mixed) == AllSlots{{"box", {0, 1}}});
}

TEST_CASE("Resources: contradictions and missing hosts or slots are refused", "[launcher]") {
  const std::vector<HostEntry> file{{"localhost", 2}};
  using Catch::Matchers::ContainsSubstring;
  for (const char* kind : {"-i", "-e"}) {
    CHECK_THAT(error_of({"--num_nodes", "1", kind, "localhost"}, cpu_box),
               ContainsSubstring("cannot be combined"));
    CHECK_THAT(error_of({"--num_gpus", "1", kind, "localhost"}, cpu_box),
               ContainsSubstring("cannot be combined"));
    CHECK_THAT(error_of({"--num_nodes", "1", "--num_gpus", "1", kind, "localhost"}, cpu_box),
               ContainsSubstring("cannot be combined"));
  }
  CHECK_THAT(error_of({"--num_nodes", "2"}, cpu_box), ContainsSubstring("needs a hostfile"));
  CHECK_THAT(error_of({"--num_nodes", "2"}, cpu_box, file), ContainsSubstring("has 1 hosts"));
  CHECK_THAT(error_of({"--num_gpus", "3"}, cpu_box, file), ContainsSubstring("has 2 slots"));
  CHECK_THAT(error_of({"-i", "localhost:9"}, cpu_box), ContainsSubstring("no slot 9"));
  CHECK_THAT(error_of({"--num_gpus", "9"}, gpu_box), ContainsSubstring("4 devices are present"));
  CHECK(error_of({"--num_gpus", "9", "--oversubscribe"}, gpu_box).empty());
  CHECK_THAT(error_of({"-e", "localhost"}, cpu_box), ContainsSubstring("no slot is left"));
  CHECK_THAT(error_of({"--launcher", "local"}, cpu_box, std::vector<HostEntry>{{"worker-1", 1}}),
             ContainsSubstring("\"worker-1\" is another machine"));
  const std::vector<HostEntry> twice{{"LOCALHOST", 1}, {"w1", 1}, {"127.0.0.1", 1}};
  for (const char* launcher : {"ssh", "openmpi", "mpich"}) {
    CAPTURE(launcher);
    CHECK_THAT(error_of({"--launcher", launcher}, cpu_box, twice),
               ContainsSubstring("\"LOCALHOST\" and \"127.0.0.1\" are the same machine"));
  }
  CHECK_THAT(error_of({}, cpu_box, std::vector<HostEntry>{{"box", 1}, {"::1", 1}}),
             ContainsSubstring("are the same machine"));
}

TEST_CASE("Resources: ranks that cannot use GPUs do not take their slots", "[launcher]") {
  using Catch::Matchers::ContainsSubstring;
  const auto on_cpus = [](const Words& words, const Machine& machine, const auto& hostfile) {
    return resolve(typed(words), machine, hostfile, launcher::RankDevice::cpu_only);
  };
  const std::optional<std::vector<HostEntry>> none;
  const std::optional<std::vector<HostEntry>> own{{{"localhost", 2}}};
  const std::optional<std::vector<HostEntry>> others{{{"w0", 2}}};
  const std::string reason = "this machine has 4 GPUs, but libdstrain_cuda.so is not installed";
  const auto [words, what] = GENERATE(table<Words, std::string>(
      {{{"--num_gpus", "2"}, "--num_gpus 2: "},
       {{"--num_gpus", "2", "--device", "auto"}, "--num_gpus 2: "},
       {{"-i", "localhost:0"}, "--include localhost:0: "},
       {{"-e", "localhost:0"}, "--exclude localhost:0: "},
       {{"--no_ssh", "--node_rank", "0", "--num_gpus", "2"}, "--num_gpus 2: "}}));
  CHECK_THROWS_WITH(on_cpus(words, gpu_box, none),
                    ContainsSubstring(what + reason) && ContainsSubstring("--device cpu"));
  Words meant = words;
  meant.insert(meant.end(), {"--device", "cpu"});
  CHECK(on_cpus(meant, gpu_box, none).warnings.empty());
  CHECK(on_cpus(words, cpu_box, none).warnings.empty());
  CHECK_THROWS_WITH(on_cpus({}, gpu_box, own),
                    ContainsSubstring("hostfile /job/hostfile: " + reason));
  CHECK_THROWS_WITH(on_cpus({"-H", "f"}, gpu_box, own), ContainsSubstring("hostfile f: " + reason));
  // Its GPUs are of no matter where it has no part in the job.
  CHECK(on_cpus({}, gpu_box, others).warnings.empty());

  Machine machine = gpu_box;
  machine.visible_gpus = GENERATE(values<std::optional<std::string>>({std::nullopt, "1,2"}));
  const auto idle = on_cpus({}, machine, none);
  CHECK(idle.plan.hosts() == AllSlots{{"localhost", {0}}});
  REQUIRE(idle.warnings.size() == 1);
  CHECK_THAT(idle.warnings.front(), ContainsSubstring("the GPUs of this machine (4) are not used"));
  machine.visible_gpus = "";
  CHECK(on_cpus({"--num_gpus", "2"}, machine, none).warnings.empty());
}

TEST_CASE("Resources: other hosts are reached over the network", "[launcher]") {
  const std::vector<HostEntry> file{{"w0", 2}, {"box", 1}, {"::2", 3}};
  const auto found = resolve(typed({}), gpu_box, file);
  CHECK(found.plan.world_size() == 6);
  CHECK(found.remote == std::vector<bool>{true, false, true});
  CHECK(found.launcher() == "ssh");
  const auto forced =
      resolve(typed({"--force_multi"}), cpu_box, std::vector<HostEntry>{{"box", 1}});
  CHECK(forced.remote == std::vector<bool>{true});
  CHECK(resolve(typed({}), cpu_box, {}).launcher() == "local");
  // GPUs of this machine say nothing of another's.
  CHECK(error_of({}, gpu_box, std::vector<HostEntry>{{"w0", 9}}).empty());
  CHECK_THAT(error_of({}, gpu_box, std::vector<HostEntry>{{"w0", 9}, {"box", 5}}),
             Catch::Matchers::ContainsSubstring("4 devices are present"));
}

TEST_CASE("Resources: without ssh each node starts its own ranks", "[launcher]") {
  const auto alike = resolve(
      typed({"--no_ssh", "--num_nodes", "3", "--node_rank", "2", "--num_gpus", "2"}), cpu_box, {});
  CHECK(alike.node_rank == 2);
  CHECK(alike.plan.world_size() == 6);
  CHECK(alike.plan.hosts()[1] == launcher::HostSlots{"node1", {0, 1}, true});
  CHECK(alike.launcher() == "local");
  LaunchOptions step = typed({"--no_ssh", "--num_nodes", "2", "--node_rank", "1"});
  step.node_names = {"n1", "n2"};
  CHECK(resolve(step, cpu_box, {}).plan.hosts()[1] == launcher::HostSlots{"n2", {0}});
  const std::vector<HostEntry> file{{"w0", 2}, {"w1", 1}};
  const auto named = resolve(typed({"--no_ssh", "--node_rank", "1"}), cpu_box, file);
  CHECK(named.plan.world_size() == 3);
  CHECK_THAT(error_of({"--no_ssh", "--node_rank", "2"}, cpu_box, file),
             Catch::Matchers::ContainsSubstring("there are 2 nodes"));
}

TEST_CASE("Resources: a named hostfile must exist", "[launcher]") {
  for (const std::string name : {"/nonexistent/hosts", "w0,w1"}) {
    CHECK_THROWS_WITH(
        launcher::find_hostfile(typed({"-H", name})),
        Catch::Matchers::StartsWith("--hostfile " + name + ": no such file; write a line "));
  }
}

TEST_CASE("Placement: local ranks count from 0 on every node", "[launcher]") {
  const launcher::HostPlan plan({{"a", {0, 2, 3}}, {"b", {5, 7}}});
  REQUIRE(plan.world_size() == 5);
  const std::vector<int> local_ranks{0, 1, 2, 0, 1};
  const std::vector<int> slots{0, 2, 3, 5, 7};
  const auto specs = launcher::rank_environments(plan);
  for (std::size_t i = 0; i < 5; ++i) {
    const auto& place = plan.ranks()[i];
    CHECK(place.rank == static_cast<int>(i));
    CHECK(place.local_rank == local_ranks[i]);
    CHECK(place.slot == slots[i]);
    CHECK(plan.local_size(place) == (i < 3 ? 3 : 2));
    CHECK(specs[i].env.back() == launcher::EnvVar{"CROSS_RANK", i < 3 ? "0" : "1"});
  }
}

TEST_CASE("Placement: the number of ranks is limited", "[launcher]") {
  std::vector<int> slots(1024);
  std::iota(slots.begin(), slots.end(), 0);
  std::vector<HostSlots> hosts(1024, {"h", slots});
  CHECK(HostPlan(hosts).world_size() == 1 << 20);
  hosts.push_back({"one more", {0}});
  CHECK_THROWS_AS(HostPlan(hosts), Error);
}

TEST_CASE("Machine: cores are shared between the ranks", "[launcher]") {
  CHECK(launcher::cores_per_rank(8, 3) == 2);
  CHECK(launcher::cores_per_rank(2, 8) == 1);
  CHECK(usable_cores() >= 1);
}
