// What becomes of a run on a GPU when one of its calls fails: only the stand-in fails on request.
#include <nlohmann/json.hpp>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_gpu.h"
#include "tests/support/variable.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Two ranks with everything that copies; `refuses` as DSTRAIN_STAND_IN_REFUSES has it, of rank 1.
test::TrainRun run_refused(const std::string& refuses, const std::filesystem::path& output) {
  if (!test::stands_in_for_gpu()) test::skip("a GPU does not fail on request");
  test::use_test_gpu();
  const nlohmann::json host{{"device", "cpu"}};
  const test::ResumableRun run{
      .ranks = 2,
      .stage = 3,
      .bf16 = true,
      .zero = {{"overlap_comm", true}, {"offload_optimizer", host}, {"offload_param", host}}};
  return test::run_train({"--device", "cuda", "--num_gpus", "2", "--oversubscribe"}, run.config(),
                         output, run.arguments(3),
                         {{"DSTRAIN_GPU_DIRECTORY", test::test_gpu_directory()},
                          {"DSTRAIN_STAND_IN_REFUSES", refuses},
                          {"DSTRAIN_STAND_IN_REFUSES_RANK", "1"}});
}

}  // namespace

TEST_CASE("CUDA failures: a call that fails ends the run and is named", "[cuda][e2e]") {
  const std::string function = GENERATE(
      "cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaSetDevice", "cudaPointerGetAttributes",
      "cudaInitDevice", "cudaMalloc", "cudaHostRegister", "cudaStreamCreateWithPriority",
      "cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaEventCreateWithFlags", "cudaEventRecord",
      "cudaEventSynchronize", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaLaunchKernelEx",
      "cublasLtCreate", "cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
      "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate",
      "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul");
  const test::TempDir folder;
  const test::TrainRun run = run_refused(function + " 1", folder.path() / "out");
  CAPTURE(function, run.err);
  CHECK(run.status != 0);
  CHECK_THAT(run.err, ContainsSubstring(function) && ContainsSubstring("rank 1 on localhost"));
}

TEST_CASE("CUDA failures: exhausted memory is reported with settings that need less",
          "[cuda][e2e]") {
  const test::TempDir folder;
  const test::TrainRun run = run_refused("cudaMalloc 2", folder.path() / "out");
  CHECK(run.status == 1);
  CHECK_THAT(run.err, ContainsSubstring("out of memory (cudaErrorMemoryAllocation); for ") &&
                          ContainsSubstring("(in use: parameters ") &&
                          ContainsSubstring("it would need less with ") &&
                          ContainsSubstring("--gradient_checkpointing ("));
}

TEST_CASE("CUDA failures: a failed time measurement ends the run", "[cuda][e2e][profile]") {
  if (!test::stands_in_for_gpu()) test::skip("a GPU does not fail on request");
  test::use_test_gpu();
  const std::string call = GENERATE("cudaEventElapsedTime 9", "cudaEventQuery 9",
                                    "cudaEventRecord 20 after cudaEventElapsedTime");
  const test::TempDir folder;
  const test::ResumableRun run{.ranks = 1,
                               .more = {"--profile", (folder.path() / "profile.json").string()}};
  const test::TrainRun refused = test::run_train(
      {"--device", "cuda", "--num_gpus", "1"}, run.config(), folder.path() / "out",
      run.arguments(3),
      {{"DSTRAIN_GPU_DIRECTORY", test::test_gpu_directory()}, {"DSTRAIN_STAND_IN_REFUSES", call}});
  CAPTURE(call, refused.err);
  CHECK(refused.status == 1);
  CHECK_THAT(refused.err, ContainsSubstring("GPU 0, for the times of --profile: " +
                                            call.substr(0, call.find(' ')) + ": refused"));
}

TEST_CASE("CUDA failures: a GPU that the build has no kernels for is refused", "[cuda][e2e]") {
  const test::TempDir folder;
  const test::TrainRun run = run_refused("cudaFuncGetAttributes 1", folder.path() / "out");
  CHECK(run.status != 0);
  CHECK_THAT(run.err,
             ContainsSubstring("compute capability 9.0, for which this build has no kernels") &&
                 ContainsSubstring("-DCMAKE_CUDA_ARCHITECTURES=90"));
}

TEST_CASE("CUDA failures: a GPU that breaks during a run ends it", "[cuda][e2e]") {
  const int kernel = GENERATE(1, 40, 150);
  const test::TempDir folder;
  const test::Variable reported("DSTRAIN_STAND_IN_XID", "31 79");
  const test::TrainRun run =
      run_refused("cudaErrorIllegalAddress " + std::to_string(kernel), folder.path() / "out");
  CAPTURE(kernel, run.err);
  CHECK(run.status != 0);
  CHECK_THAT(run.err, ContainsSubstring("an illegal memory access") &&
                          ContainsSubstring("the GPU can do nothing more for this process") &&
                          ContainsSubstring("; the driver reports Xid 31 (a kernel used memory "
                                            "that is not its own), Xid 79 (the GPU has fallen "
                                            "off the bus): leave the GPU out"));
}
