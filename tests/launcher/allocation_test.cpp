#include "launcher/plan/allocation.h"

#include <cstdlib>
#include <map>

#include "launcher/plan/resources.h"
#include "runtime/base/error.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Variables of SLURM for the time of a scope; none of its others are set in tests.
class Variables {
 public:
  explicit Variables(std::map<std::string, std::string> variables)
      : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }

 private:
  std::map<std::string, std::string> variables_;
};

std::map<std::string, std::string> two_nodes(const std::string& tasks) {
  return {{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", tasks}};
}

std::map<std::string, std::string> step(const std::string& tasks) {
  return {{"SLURM_STEP_ID", "0"},
          {"SLURM_NODEID", "1"},
          {"SLURM_PROCID", "1"},
          {"SLURM_STEP_NUM_TASKS", tasks},
          {"SLURM_STEP_NODELIST", "n[1-2]"}};
}

LaunchOptions typed(std::vector<std::string> words) {
  words.emplace_back("p");
  return parse_command_line(words).options;
}

Resources resolve(const LaunchOptions& options,
                  const std::optional<std::vector<HostEntry>>& hostfile = std::nullopt) {
  const Machine machine{"n1.cluster", 4, 0, std::nullopt};
  return resolve_resources(options, machine, {hostfile, this_allocation()}, RankDevice::any);
}

}  // namespace

TEST_CASE("Allocation: its end is known if SLURM reports it", "[launcher][slurm]") {
  CHECK_FALSE(allocation_end());
  const Variables end(std::map<std::string, std::string>{{"SLURM_JOB_END_TIME", "1764259200"}});
  CHECK_FALSE(allocation_end());
  const Variables inside(two_nodes("2,1"));
  CHECK(allocation_end() == 1764259200);
}

TEST_CASE("Allocation: its nodes and tasks are hosts and slots", "[launcher][slurm]") {
  const Variables inside(two_nodes("2,1"));
  const Resources all = resolve(typed({}));
  CHECK(all.launcher() == "slurm");
  CHECK(all.plan.hosts() == std::vector<HostSlots>{{"n1", {0, 1}}, {"n2", {0}}});
  CHECK(all.remote == std::vector<bool>{false, true});
  CHECK(resolve(typed({"--num_gpus", "3"})).plan.world_size() == 6);
  CHECK(resolve(typed({"--num_nodes", "1"})).plan.world_size() == 2);
  CHECK(resolve(typed({"--exclude", "n1:1"})).plan.world_size() == 2);
  CHECK(resolve(typed({"--launcher", "openmpi"})).launcher() == "openmpi");
  CHECK(resolve(typed({"--launcher", "local"})).launcher() == "local");
  CHECK(resolve(typed({}), {{{"n2", 4}}}).plan.hosts().front().slots.size() == 4);
}

TEST_CASE("Allocation: in a step of one node the tasks are those of the step",
          "[launcher][slurm]") {
  const Variables inside(two_nodes("1"));
  const std::map<std::string, std::string> one_task{{"SLURM_STEP_ID", "0"}};
  const Variables within(one_task);
  CHECK(resolve(typed({})).plan.hosts() == std::vector<HostSlots>{{"n1", {0}}, {"n2", {0}}});
}

TEST_CASE("Allocation: hosts and slots outside of it are refused", "[launcher][slurm]") {
  CHECK_THAT(test::error_of([] {
               resolve(typed({"--launcher", "slurm"}));
             }),
             ContainsSubstring("--launcher slurm: not inside an allocation"));
  CHECK_THAT(test::error_of([] {
               resolve(typed({"--launcher_args", "-v"}));
             }),
             ContainsSubstring("starts neither srun nor mpirun"));
  const Variables inside(two_nodes("2,1"));
  CHECK_THAT(test::error_of([] {
               resolve(typed({}), {{{"w3", 1}}});
             }),
             ContainsSubstring("\"w3\" of the hostfile is not in the allocation n[1-2]"));
  CHECK_THAT(test::error_of([] {
               resolve(typed({"--include", "w3"}));
             }),
             ContainsSubstring("\"w3\" is not in the allocation n[1-2]"));
  CHECK_THAT(test::error_of([] {
               resolve(typed({"--num_nodes", "3"}));
             }),
             ContainsSubstring("the allocation n[1-2] has 2 hosts"));
  const Variables unfit(two_nodes("2(x3)"));
  CHECK_THAT(
      test::error_of([] { this_allocation(); }),
      ContainsSubstring("SLURM_TASKS_PER_NODE=2(x3) does not fit SLURM_JOB_NODELIST=n[1-2]"));
}

TEST_CASE("Step: one launcher per node knows its place", "[launcher][slurm]") {
  const Variables inside(step("2"));
  LaunchOptions options = typed({"--num_gpus", "2"});
  join_step(options);
  CHECK(options.no_ssh);
  CHECK(options.node_rank == 1);
  CHECK(options.num_nodes == 2);
  CHECK(options.master_addr == "n1");
  CHECK(options.node_names == std::vector<std::string>{"n1", "n2"});
  LaunchOptions same =
      typed({"--no_ssh", "--node_rank", "1", "--num_nodes", "2", "--master_addr", "10.0.0.9"});
  join_step(same);
  CHECK(same.master_addr == "10.0.0.9");
  LaunchOptions other = typed({"--no_ssh", "--node_rank", "0", "--num_nodes", "2"});
  CHECK_THAT(test::error_of([&] { join_step(other); }),
             ContainsSubstring("--node_rank 0 contradicts SLURM_NODEID=1"));
  LaunchOptions through = typed({"--launcher", "slurm"});
  CHECK_THAT(test::error_of([&] { join_step(through); }),
             ContainsSubstring("one dstrain per node"));
}

TEST_CASE("Step: several launchers on a node are refused", "[launcher][slurm]") {
  const Variables inside(step("4"));
  LaunchOptions options = typed({});
  CHECK_THAT(test::error_of([&] { join_step(options); }),
             ContainsSubstring("SLURM_STEP_NUM_TASKS=4 on n[1-2]: srun has"));
}

TEST_CASE("Step: tasks of mpirun within a step are ranks but those of srun are not",
          "[launcher][slurm]") {
  const Variables inside(step("2"));
  const Variables by_mpirun({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}});
  LaunchOptions options = typed({});
  join_step(options);
  CHECK_FALSE(options.no_ssh);
}

TEST_CASE("Step: a single task changes nothing", "[launcher][slurm]") {
  const Variables inside(step("1"));
  LaunchOptions options = typed({});
  join_step(options);
  CHECK_FALSE(options.no_ssh);
}
