// --tune_matmuls in a run: when algorithms are chosen, by whom, and what becomes of them. On what
// stands in for a GPU, where results show which algorithm was taken and the environment says which
// is the fastest.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_gpu.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

namespace {

struct Job {
  int ranks = 1;
  int steps = 3;
  std::string fastest = "1";  ///< of rank r the r-th digit
  Words more{};
  std::vector<launcher::EnvVar> environment{};
  Words launch{};
  int micro_batch = 3;
};

/// Runs in fp32, in micro batches of one size on any number of ranks.
class Jobs {
 public:
  Jobs() {
    if (!test::stands_in_for_gpu()) test::skip("a GPU's results do not show its algorithms");
    test::use_test_gpu();
  }
  test::TrainRun run(const std::string& output, const Job& job) const {
    const test::ResumableRun made{.ranks = job.ranks, .micro_batch = job.micro_batch};
    Words launch{"--device", "cuda", "--num_gpus", std::to_string(job.ranks)};
    if (job.ranks > 1) launch.emplace_back("--oversubscribe");
    launch.insert(launch.end(), job.launch.begin(), job.launch.end());
    Words arguments = made.arguments(job.steps);
    const Words small{"--config_overrides",
                      "n_layer=1,n_embd=16,n_head=2,vocab_size=160,n_positions=8", "--block_size",
                      "8"};
    arguments.insert(arguments.end(), small.begin(), small.end());
    arguments.insert(arguments.end(), job.more.begin(), job.more.end());
    std::vector<launcher::EnvVar> environment{{"DSTRAIN_GPU_DIRECTORY", test::test_gpu_directory()},
                                              {"DSTRAIN_STAND_IN_FASTEST", job.fastest}};
    environment.insert(environment.end(), job.environment.begin(), job.environment.end());
    return test::run_train(launch, made.config(), path(output), arguments, environment);
  }
  /// Of a run that ends well.
  test::TrainRun whole(const std::string& output, const Job& job) const {
    test::TrainRun made = run(output, job);
    CAPTURE(output, made.err);
    REQUIRE(made.status == 0);
    return made;
  }
  [[nodiscard]] std::filesystem::path path(const std::string& name) const {
    return folder_.path() / name;
  }

 private:
  test::TempDir folder_;
};

const Words tune{"--tune_matmuls"};
const Words saved{"--tune_matmuls", "--save_steps", "2"};
const Words resumed{"--tune_matmuls", "--save_steps", "2", "--resume_from_checkpoint", "latest"};

}  // namespace

TEST_CASE("CUDA tuning: the second step is the first one with the fastest algorithms",
          "[cuda][e2e]") {
  const Jobs jobs;
  const test::TrainRun plain = jobs.whole("plain", {});
  const test::TrainRun tuned = jobs.whole("tuned", {.more = tune});
  CHECK_THAT(tuned.err, ContainsSubstring("matrix products take tuned algorithms"));
  const Words first = test::results_of(plain);
  const Words second = test::results_of(tuned);
  CHECK(second[0] == first[0]);
  CHECK(second[1] != first[1]);
  // Where the fastest is what would be taken anyway nothing changes.
  CHECK(test::results_of(jobs.whole("same", {.fastest = "0", .more = tune})) == first);
}

TEST_CASE("CUDA tuning: all ranks use the algorithms that are fastest on rank 0", "[cuda][e2e]") {
  const Jobs jobs;
  const auto results = [&](const std::string& fastest) {
    return test::results_of(
        jobs.whole(fastest, {.ranks = 2, .steps = 2, .fastest = fastest, .more = tune}));
  };
  const Words expected = results("11");
  CHECK(results("12") == expected);
  CHECK(results("21") != expected);
}

TEST_CASE("CUDA tuning: a resumed run uses the algorithms in its checkpoint", "[cuda][e2e]") {
  const Jobs jobs;
  const test::TrainRun whole = jobs.whole("whole", {.ranks = 2, .steps = 4, .more = tune});
  jobs.whole("cut", {.ranks = 2, .steps = 2, .more = saved});
  std::filesystem::copy(jobs.path("cut"), jobs.path("alone"),
                        std::filesystem::copy_options::recursive);
  // What is the fastest by then does not matter.
  const test::TrainRun last =
      jobs.whole("cut", {.ranks = 2, .steps = 4, .fastest = "22", .more = resumed});
  CHECK(test::results_of(last) == test::results_of(whole));
  CHECK(test::read_bytes(jobs.path("cut/model.safetensors")) ==
        test::read_bytes(jobs.path("whole/model.safetensors")));
  const auto kept = [&](const char* output, int step) {
    return test::read_json(
               jobs.path(fmt::format("{}/checkpoint-{}/trainer_state.json", output, step)))
        .at("matmul_algorithms");
  };
  CHECK(kept("cut", 4) == kept("cut", 2));
  // One rank has the same products, and knows them all.
  const test::TrainRun alone = jobs.whole("alone", {.steps = 4, .fastest = "2", .more = resumed});
  CHECK_THAT(alone.err, ContainsSubstring("matrix products take tuned algorithms") &&
                            !ContainsSubstring("the device's own choice"));
  CHECK(kept("alone", 4) == kept("cut", 2));
}

TEST_CASE("CUDA tuning: unusable algorithms in a checkpoint are reported", "[cuda][e2e]") {
  const Jobs jobs;
  jobs.whole("cut", {.steps = 2, .more = saved});
  const auto copy = [&](const char* name) {
    std::filesystem::copy(jobs.path("cut"), jobs.path(name),
                          std::filesystem::copy_options::recursive);
    return name;
  };
  const test::TrainRun other = jobs.whole(
      copy("other"),
      {.steps = 4, .more = resumed, .environment = {{"DSTRAIN_STAND_IN_CUBLASLT", "130001"}}});
  CHECK_THAT(other.err,
             ContainsSubstring("they are of cuBLASLt 130000, and this is cuBLASLt 130001") &&
                 !ContainsSubstring("matrix products take tuned algorithms"));
  Words without = resumed;
  without.erase(without.begin());
  const test::TrainRun plain = jobs.whole(copy("plain"), {.steps = 4, .more = without});
  CHECK_THAT(plain.err, ContainsSubstring("are not used without --tune_matmuls"));
  CHECK(test::results_of(other) == test::results_of(plain));
  const test::TrainRun smaller =
      jobs.whole(copy("smaller"), {.steps = 3, .more = resumed, .micro_batch = 2});
  CHECK_THAT(smaller.err, ContainsSubstring("are not among those that the checkpoint keeps"));
}

TEST_CASE("CUDA tuning: it takes no more memory than the run may", "[cuda][e2e]") {
  const Jobs jobs;
  const test::TrainRun plain = jobs.whole("plain", {});
  Bytes planned = 0;
  for (const auto& [category, bytes] : plain.metrics.back().at("planned_device_memory").items()) {
    planned += bytes.get<Bytes>();
  }
  const test::TrainRun tuned = jobs.whole(
      "tuned", {.more = tune, .launch = {"--device_memory", fmt::format("{}", planned + 4096)}});
  CHECK_THAT(tuned.err,
             ContainsSubstring("0 of") && ContainsSubstring("found no memory to be tried in"));
  CHECK(test::results_of(tuned) == test::results_of(plain));
  const nlohmann::json& last = tuned.metrics.back();
  CHECK(last.at("device_memory") == last.at("planned_device_memory"));
}

TEST_CASE("CUDA tuning: a call that fails ends the run and is named", "[cuda][e2e]") {
  const Jobs jobs;
  const test::TrainRun run =
      jobs.run("out", {.ranks = 2,
                       .steps = 2,
                       .more = tune,
                       .environment = {{"DSTRAIN_STAND_IN_REFUSES", "cudaEventElapsedTime 1"},
                                       {"DSTRAIN_STAND_IN_REFUSES_RANK", "0"}}});
  CAPTURE(run.err);
  CHECK(run.status != 0);
  CHECK_THAT(run.err,
             ContainsSubstring("cudaEventElapsedTime") && ContainsSubstring("rank 0 on localhost"));
}

TEST_CASE("CUDA tuning: a failing algorithm is skipped", "[cuda][e2e]") {
  const Jobs jobs;
  const std::string call =
      GENERATE("cublasLtMatmulAlgoCheck 1", "cublasLtMatmul 1 after cublasLtMatmulAlgoCheck");
  const test::TrainRun run = jobs.run(
      "out",
      {.ranks = 1, .steps = 2, .more = tune, .environment = {{"DSTRAIN_STAND_IN_REFUSES", call}}});
  CAPTURE(call, run.err);
  CHECK(run.status == 0);
  CHECK_THAT(run.err, ContainsSubstring("matrix products take tuned algorithms"));
}

TEST_CASE("CUDA tuning: on CPUs one line says that there is nothing to tune", "[cuda][e2e]") {
  const test::TempDir folder;
  const test::ResumableRun run{.ranks = 1, .more = tune};
  const test::TrainRun made =
      test::run_train({"--device", "cpu"}, run.config(), folder.path() / "out", run.arguments(1));
  CHECK(made.status == 0);
  CHECK_THAT(made.err, ContainsSubstring("--tune_matmuls: has no effect: CPUs have one algorithm"));
}
