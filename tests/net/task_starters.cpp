#include "tests/net/task_starters.h"

#include <filesystem>

#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace dstrain::test {

TaskStarterUnderTest::TaskStarterUnderTest(const std::string& launcher) : launcher_(launcher) {
  // The sanitizer would tell of memory that MPI itself leaves.
  environment_ = {{"OMP_NUM_THREADS", "1"}, {"ASAN_OPTIONS", "detect_leaks=0"}};
  if (launcher == "openmpi") {
    if (!std::filesystem::exists("/usr/bin/mpirun.openmpi")) skip("needs openmpi-bin");
    environment_.push_back({"OMPI_ALLOW_RUN_AS_ROOT", "1"});
    environment_.push_back({"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"});
  } else if (launcher == "mpich") {
    if (!std::filesystem::exists("/usr/bin/mpiexec.mpich")) skip("needs mpich");
  } else {
    cluster_ = std::make_unique<SlurmCluster>();
    output_of({"/usr/bin/salloc", "--quiet", "--no-shell", "--nodes=2", "--ntasks=3"});
    job_ = output_of({"/usr/bin/squeue", "--noheader", "--format=%A"});
    job_.pop_back();
    environment_.push_back({"SLURM_JOB_ID", job_});
    environment_.push_back({"SLURM_JOB_NODELIST", "n[1-2]"});
    environment_.push_back({"SLURM_TASKS_PER_NODE", "2,1"});
    environment_.push_back({"SLURM_NNODES", "2"});
  }
}

std::vector<std::string> TaskStarterUnderTest::options() const {
  // Inside an allocation nothing needs to be said.
  if (launcher_ == "slurm") return {"--log_level", "warning"};
  return {"--log_level", "warning", "--oversubscribe", "--launcher", launcher_, "--num_gpus", "3"};
}

std::vector<std::string> TaskStarterUnderTest::shell(const std::string& script,
                                                     const std::vector<std::string>& more) const {
  std::vector<std::string> words = options();
  words.insert(words.end(), more.begin(), more.end());
  words.insert(words.end(), {"sh", "-c", script});
  return words;
}

std::string any_task_launcher() {
  return GENERATE("openmpi", "mpich", "slurm");
}

}  // namespace dstrain::test
