// Machines with GPUs, which dstraind cannot use.
#include <filesystem>
#include <fstream>

#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/test_tree.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;
using test::train_command;

namespace {

namespace fs = std::filesystem;

/// The programs without the plug-in of GPUs, which lies beside them where there is a toolkit.
const fs::path& program_alone() {
  static const test::TempDir folder;
  static const fs::path program = [] {
    const fs::path copy = test::copy_program(folder.path());
    fs::copy_file(test::dstrain_program().parent_path() / "dstraind", folder.path() / "dstraind");
    return copy;
  }();
  return program;
}

/// A machine with two GPUs, which need not be its first ones.
Launch::Options two_gpus(const fs::path& folder) {
  for (const char* name : {"nvidia1", "nvidia12", "nvidiactl", "nvidia-uvm", "nvidia"}) {
    std::ofstream(folder / name) << "";
  }
  return {.env = {{"DSTRAIN_GPU_DIRECTORY", folder.string()}},
          .directory = test::golden_folder.string(),
          .program = program_alone()};
}

Words operator+(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

TEST_CASE("GPUs: slots that the ranks cannot use are refused", "[e2e][gpus]") {
  const test::TempDir folder;
  const Launch::Options options = two_gpus(folder.path());
  const fs::path output = folder.path() / "out";
  std::ofstream(folder.path() / "hosts") << "localhost slots=2\n";
  const std::vector<Words> places{{"--num_gpus", "2"},
                                  {"--include", "localhost:1"},
                                  {"--exclude", "localhost:1"},
                                  {"-H", (folder.path() / "hosts").string()}};
  const std::vector<Words> commands{
      train_command(output), {"generate", "--prompt", "a"}, {"bench", "comm"}};
  for (const Words& place : places) {
    for (const Words& command : commands) {
      Launch launch(place + command, options);
      CHECK(launch.wait() == 2);
      CHECK_THAT(launch.err(),
                 ContainsSubstring("2 GPUs") && ContainsSubstring("is not installed") &&
                     ContainsSubstring("--device cpu") && ContainsSubstring(place.back()));
      CHECK_FALSE(fs::exists(output));
    }
  }
}

TEST_CASE("GPUs: without given slots one CPU rank runs and reports idle GPUs", "[e2e][gpus]") {
  const test::TempDir folder;
  Launch launch(train_command(folder.path() / "out"), two_gpus(folder.path()));
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.err(),
             ContainsSubstring(
                 "the GPUs of this machine (2) are not used, because libdstrain_cuda.so is not "
                 "installed") &&
                 ContainsSubstring("1 rank on localhost"));
}

TEST_CASE("GPUs: with --device cpu the slots are CPU ranks", "[e2e][gpus]") {
  const test::TempDir folder;
  Launch launch(Words{"--device", "cpu", "--num_gpus", "2"} + train_command(folder.path() / "out"),
                two_gpus(folder.path()));
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.err(), !ContainsSubstring("GPU"));
}

TEST_CASE("GPUs: programs other than train get them", "[e2e][gpus]") {
  const test::TempDir folder;
  Launch launch({"--num_gpus", "2", "sh", "-c", "echo uses $CUDA_VISIBLE_DEVICES"},
                two_gpus(folder.path()));
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.out(), ContainsSubstring("[rank 0]: uses 0,1\n") &&
                               ContainsSubstring("[rank 1]: uses 0,1\n"));
}

TEST_CASE("GPUs: visible GPUs must exist", "[e2e][gpus]") {
  const test::TempDir folder;
  struct Row {
    const char* list;
    const char* reason;
  };
  const Row row = GENERATE(Row{"0,2", "there is no GPU 2: 2 GPUs are there, 0 to 1"},
                           Row{"7", "there is no GPU 7"},          //
                           Row{"1,0,1", "GPU 1 is listed twice"},  //
                           Row{"GPU-5f,GPU-5f", "GPU GPU-5f is listed twice"},
                           Row{"0,gpu1", "\"gpu1\" is not a GPU"},  //
                           Row{"0,-1,1", "\"-1\" is not a GPU"},    //
                           Row{"0,,1", "\"\" is not a GPU"},        //
                           Row{"0-1", "\"0-1\" is not a GPU"});
  Launch::Options options = two_gpus(folder.path());
  options.env.push_back({"CUDA_VISIBLE_DEVICES", row.list});
  for (const Words& words : {Words{}, Words{"--num_gpus", "1"}}) {
    Launch launch(words + Words{"sh", "-c", "touch " + (folder.path() / "ran").string()}, options);
    CHECK(launch.wait() == 2);
    CHECK_THAT(launch.err(),
               ContainsSubstring(std::string("CUDA_VISIBLE_DEVICES=") + row.list + ": ") &&
                   ContainsSubstring(row.reason));
    CHECK_FALSE(fs::exists(folder.path() / "ran"));
  }
  Launch doctor({"doctor"}, options);
  CHECK(doctor.wait() != 0);
  CHECK_THAT(doctor.out(), ContainsSubstring(row.reason));
  // Who computes on CPUs has nothing to do with it.
  Launch cpu(Words{"--device", "cpu"} + train_command(folder.path() / "out"), options);
  CHECK(cpu.wait() == 0);
}

TEST_CASE("GPUs: ranks get the visible ones in their order", "[e2e][gpus]") {
  const test::TempDir folder;
  std::ofstream(folder.path() / "nvidia2") << "";
  std::ofstream(folder.path() / "nvidia3") << "";
  std::ofstream(folder.path() / "hosts") << "localhost slots=2\n";
  struct Row {
    const char* list;
    Words words;
    const char* ranks;
    const char* uses;
    bool hostfile = false;
  };
  const Row row = GENERATE(
      Row{"1", {}, "1", "1"}, Row{"1,0", {}, "2", "1,0"},
      Row{"2,3", {"--num_gpus", "2"}, "2", "2,3"}, Row{"3,1,2", {"--num_gpus", "2"}, "2", "3,1"},
      Row{"2,3", {"-i", "localhost:1"}, "1", "3"}, Row{"2,3", {"-e", "localhost:1"}, "1", "2"},
      Row{"2,3", {}, "2", "2,3", true}, Row{"3,2,1", {"--num_gpus", "1"}, "1", "3", true},
      Row{"0,3,2", {"-i", "localhost:0,1"}, "2", "0,3", true},
      Row{"GPU-5f,MIG-7/1/0", {}, "2", "GPU-5f,MIG-7/1/0"},
      Row{"GPU-5f,MIG-7/1/0", {"--num_gpus", "1"}, "1", "GPU-5f"}, Row{"", {}, "1", ""},
      Row{"-1", {}, "1", "-1"}, Row{"0", {"--oversubscribe", "--num_gpus", "3"}, "3", "0"});
  CAPTURE(row.list, row.words, row.hostfile);
  Launch::Options options = two_gpus(folder.path());
  options.env.push_back({"CUDA_VISIBLE_DEVICES", row.list});
  const Words hostfile{"-H", (folder.path() / "hosts").string()};
  Launch launch(
      (row.hostfile ? hostfile : Words{}) + row.words +
          Words{"--", "sh", "-c", "echo $WORLD_SIZE ranks use \"$CUDA_VISIBLE_DEVICES\"."},
      options);
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.out(),
             ContainsSubstring(std::string(row.ranks) + " ranks use " + row.uses + ".\n"));
}

TEST_CASE("GPUs: another host with wrong visible GPUs is named", "[e2e][gpus]") {
  const test::FakeHosts hosts("plain slots=1\nblind1 slots=1\n");
  std::ofstream(hosts.folder() / "nvidia0") << "";
  const fs::path ran = hosts.folder() / "ran";
  Launch refused(hosts.shell("touch " + ran.string()));
  CHECK(refused.wait() == 2);
  CHECK_THAT(refused.err(),
             ContainsSubstring(
                 "host blind1: CUDA_VISIBLE_DEVICES=7: there is no GPU 7: one GPU is there"));
  CHECK_FALSE(fs::exists(ran));
  CHECK(refused.nothing_left());
  Launch cpu(hosts.words({"--device", "cpu", "true"}));
  CHECK(cpu.wait() == 0);
}

TEST_CASE("GPUs: each host's own visible list decides its slots", "[e2e][gpus]") {
  const test::FakeHosts hosts("some1 slots=2\nsome2 slots=1\n");
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidia3"}) {
    std::ofstream(hosts.folder() / name) << "";
  }
  Launch::Options options;  // the launcher's list is about its own machine
  options.env = {{"CUDA_VISIBLE_DEVICES", "0,1"},
                 {"DSTRAIN_GPU_DIRECTORY", hosts.folder().string()}};
  Launch launch(hosts.shell("echo $RANK uses $CUDA_VISIBLE_DEVICES."), options);
  CHECK(launch.wait() == 0);
  CHECK_THAT(launch.out(), ContainsSubstring("0 uses 3,2.") && ContainsSubstring("1 uses 3,2.") &&
                               ContainsSubstring("2 uses 3."));
  const test::FakeHosts more("some1 slots=3\n");
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2", "nvidia3"}) {
    std::ofstream(more.folder() / name) << "";
  }
  Launch refused(more.shell("true"));
  CHECK(refused.wait() == 3);
  CHECK_THAT(refused.err(), ContainsSubstring("CUDA_VISIBLE_DEVICES=3,2 shows 2 GPUs"));
}

TEST_CASE("GPUs: another host whose GPUs would idle is refused by name", "[e2e][gpus]") {
  const test::FakeHosts hosts("plain slots=1\ngpus1 slots=1\n");
  for (const char* name : {"nvidia0", "nvidia1", "nvidia2"}) {
    std::ofstream(hosts.folder() / name) << "";
  }
  const fs::path output = hosts.folder() / "out";
  const Launch::Options options{
      .env = {}, .directory = test::golden_folder.string(), .program = program_alone()};
  Launch refused(hosts.words({}) + train_command(output), options);
  CHECK(refused.wait() == 2);
  CHECK_THAT(refused.err(),
             ContainsSubstring("host gpus1 has 3 GPUs") && ContainsSubstring("--device cpu"));
  CHECK_FALSE(fs::exists(output));
  CHECK(refused.nothing_left());
  Launch meant(hosts.words({"--device", "cpu"}) + train_command(output), options);
  CHECK(meant.wait() == 0);
  Launch program(hosts.shell("exit 0"), options);
  CHECK(program.wait() == 0);
}
