// NCCL's communicator, between processes that each have a GPU of what stands in for them.
#include <fstream>

#include <fmt/format.h>

#include "runtime/rank/worker_env.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using test::RankProcess;
using Variables = std::vector<std::string>;

namespace {

struct Job {
  int ranks = 2;
  std::string mode = "once";
  int gpus = 3;
  int timeout_seconds = 240;
  Variables more{};
  std::string plug_ins = DSTRAIN_STAND_IN;
};

std::vector<RankProcess> start(const Job& job) {
  const int port = test::free_port();
  std::vector<RankProcess> ranks;
  for (test::RankPlace place : test::places_of({job.ranks})) {
    place.port = port;
    place.timeout_seconds = job.timeout_seconds;
    Variables environment = test::environment_of(place);
    environment.push_back(fmt::format("{}={}", env::plug_in_path, job.plug_ins));
    environment.push_back(fmt::format("DSTRAIN_STAND_IN_GPUS={}", job.gpus));
    environment.insert(environment.end(), job.more.begin(), job.more.end());
    ranks.emplace_back(test::Program{{DSTRAIN_COMM_GPU_RANK, job.mode}, environment});
  }
  return ranks;
}

/// What the ranks print, and their statuses.
struct Ends {
  std::vector<std::string> texts;
  std::vector<int> statuses;
};

Ends ends_of(std::vector<RankProcess> ranks) {
  Ends ends;
  for (RankProcess& rank : ranks) {
    ends.texts.push_back(rank.read_all());
    ends.statuses.push_back(rank.wait());
  }
  return ends;
}

/// A call fails at one rank.
Ends ends_refused(const std::string& mode, const std::string& call, int rank) {
  return ends_of(start({.mode = mode,
                        .more = {fmt::format("DSTRAIN_STAND_IN_REFUSES={}", call),
                                 fmt::format("DSTRAIN_STAND_IN_REFUSES_RANK={}", rank)}}));
}

}  // namespace

TEST_CASE("NcclCommunicator: results are those of the host", "[comm][nccl]") {
  const int ranks = GENERATE(1, 2, 3);
  const Ends ends = ends_of(start({.ranks = ranks, .mode = "results"}));
  for (const std::string& text : ends.texts) CHECK(text == "done\n");
}

TEST_CASE("NcclCommunicator: an all_reduce has the bits of its parts", "[comm][nccl]") {
  const Ends ends = ends_of(start({.ranks = 3, .mode = "bits"}));
  for (const std::string& text : ends.texts) CHECK(text == "done\n");
}

TEST_CASE("NcclCommunicator: an observer is told when operations run", "[comm][nccl]") {
  const Ends ends = ends_of(start({.mode = "observer"}));
  for (const std::string& text : ends.texts) CHECK(text == "done\n");
}

TEST_CASE("NcclCommunicator: a missing rank is named", "[comm][nccl]") {
  std::vector<RankProcess> ranks = start({.ranks = 3, .mode = "late", .timeout_seconds = 2});
  for (const std::size_t rank : {0U, 2U}) {
    const std::string text = ranks[rank].read_all();
    CHECK_THAT(text, StartsWith("all_reduce of 5 f32 on rank ") &&
                         EndsWith("timed out after 2 s: waiting for rank 1\n"));
    CHECK(ranks[rank].wait() == status::timed_out);
  }
}

TEST_CASE("NcclCommunicator: a missing rank is named even by a rank that leaves", "[comm][nccl]") {
  std::vector<RankProcess> ranks = start({.mode = "late leave", .timeout_seconds = 2});
  CHECK(ranks[0].read_all() ==
        "all_reduce of 16 f32 on rank 0 timed out after 2 s: waiting for rank 1\n");
  CHECK(ranks[0].wait() == status::timed_out);
}

TEST_CASE("NcclCommunicator: ranks that call different operations are reported", "[comm][nccl]") {
  const Ends ends = ends_of(start({.mode = "disagree"}));
  CHECK_THAT(ends.texts[0], ContainsSubstring("the ranks disagree") &&
                                ContainsSubstring("all_reduce of 5 f32") &&
                                ContainsSubstring("rank 1 does all_reduce of 6 f32"));
}

TEST_CASE("NcclCommunicator: a rank that has left is named", "[comm][nccl]") {
  const Ends ends = ends_of(start({.mode = "leave"}));
  CHECK(ends.texts[0] == "all_reduce of 5 f32 on rank 0: rank 1 has left the group\n");
}

TEST_CASE("NcclCommunicator: an abort reaches ranks that wait", "[comm][nccl]") {
  const Ends ends = ends_of(start({.ranks = 3, .mode = "abort"}));
  for (const std::string& text : ends.texts)
    CHECK_THAT(text, ContainsSubstring("aborted by rank 1"));
  CHECK(ends.texts[0] == "all_reduce of 5 f32 on rank 0: aborted by rank 1\n");
}

TEST_CASE("NcclCommunicator: waiting for a failed collective throws", "[comm][nccl]") {
  const Ends ends = ends_of(start({.mode = "waits"}));
  for (const std::string& text : ends.texts) CHECK(text == "done\n");
}

TEST_CASE("NcclCommunicator: a killed rank is named by the others", "[comm][nccl]") {
  std::vector<RankProcess> ranks = start({.ranks = 3, .mode = "forever"});
  for (RankProcess& rank : ranks) REQUIRE(rank.read_line() == "running");
  const int pid = ranks[2].pid();
  ranks[2].kill();
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(ranks[rank].read_all(),
               ContainsSubstring("all_reduce of 50000 f32 on rank ") &&
                   ContainsSubstring(fmt::format("rank 2 (pid {}) is gone", pid)));
    CHECK(ranks[rank].wait() == status::failed);
  }
}

TEST_CASE("NcclCommunicator: a call that fails is named with its rank", "[comm][nccl]") {
  const std::string function =
      GENERATE("ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommGetAsyncError",
               "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclSend", "ncclRecv",
               "ncclGroupStart", "ncclGroupEnd");
  const int rank = function == "ncclGetUniqueId" ? 0 : 1;
  const Ends ends = ends_refused("once", function + " 1", rank);
  CAPTURE(function, ends.texts);
  const std::string named = function + ": unhandled system error: refused by the stand-in";
  for (const std::string& text : ends.texts) {
    CHECK_THAT(text, ContainsSubstring(named) && ContainsSubstring(fmt::format("rank {}: ", rank)));
  }
  for (const int status : ends.statuses) CHECK(status == status::failed);
}

TEST_CASE("NcclCommunicator: an asynchronous error of NCCL ends a collective", "[comm][nccl]") {
  const Ends ends = ends_refused("forever", "ncclCommGetAsyncError 1 after ncclReduceScatter", 1);
  for (const std::string& text : ends.texts) {
    CHECK_THAT(text, ContainsSubstring("on rank 1: ") &&
                         ContainsSubstring("ncclCommGetAsyncError: unhandled"));
  }
}

TEST_CASE("NcclCommunicator: a rank that cannot leave NCCL says so", "[comm][nccl]") {
  const std::string function = GENERATE("ncclCommFinalize", "ncclCommDestroy");
  const Ends ends = ends_refused("once", function + " 1", 1);
  CHECK_THAT(ends.texts[1], ContainsSubstring("rank 1 leaves NCCL: " + function + ": unhandled"));
  for (const int status : ends.statuses) CHECK(status == status::done);
}

TEST_CASE("NcclCommunicator: an abort that NCCL refuses is reported", "[comm][nccl]") {
  const Ends ends = ends_refused("abort", "ncclCommAbort 1", 1);
  CHECK_THAT(ends.texts[1], ContainsSubstring("ncclCommAbort: unhandled") &&
                                ContainsSubstring("aborted by rank 1"));
}

namespace {

/// What rank 0 says of how the GPUs are connected.
std::string said(Job job) {
  job.more.push_back("DSTRAIN_LOG_LEVEL=info");
  const Ends ends = ends_of(start(job));
  for (const int status : ends.statuses) CHECK(status == status::done);
  for (std::size_t rank = 1; rank < ends.texts.size(); ++rank) CHECK(ends.texts[rank] == "done\n");
  return ends.texts[0];
}

}  // namespace

TEST_CASE("NcclCommunicator: is used if each rank has a GPU", "[comm][nccl]") {
  CHECK_THAT(said({}), ContainsSubstring("collectives go through NCCL 2.28.9\n"));
  CHECK_THAT(said({.ranks = 3, .gpus = 2}),
             ContainsSubstring("collectives go through host memory: ranks 0 2 share GPU 0\n"));
  CHECK(said({.ranks = 1}) == "done\n");
}

TEST_CASE("NcclCommunicator: the NCCL that pip has installed is found", "[comm][nccl]") {
  const test::TempDir folder;
  const std::filesystem::path plug_in = std::string(DSTRAIN_STAND_IN) + "/libdstrain_cuda.so";
  std::filesystem::create_symlink(plug_in, folder.path() / "libdstrain_cuda.so");
  const std::string variable = GENERATE("VIRTUAL_ENV", "CONDA_PREFIX");
  const std::filesystem::path packages =
      folder.path() / "lib/python3.11/site-packages/nvidia/nccl/lib";
  std::filesystem::create_directories(packages);
  std::filesystem::create_symlink(plug_in, packages / "libnccl.so.2");
  // The loader takes this for the system's, which may have a real one.
  const std::filesystem::path system = folder.path() / "system";
  std::filesystem::create_directory(system);
  std::ofstream(system / "libnccl.so.2") << "no library";
  CHECK_THAT(said({.more = {fmt::format("{}={}", variable, folder.path().string()),
                            "LD_LIBRARY_PATH=" + system.string()},
                   .plug_ins = folder.path().string()}),
             ContainsSubstring("collectives go through NCCL 2.28.9\n"));
}

TEST_CASE("NcclCommunicator: ranks without NCCL say why", "[comm][nccl]") {
  const test::TempDir folder;
  const std::filesystem::path plug_in = std::string(DSTRAIN_STAND_IN) + "/libdstrain_cuda.so";
  std::filesystem::create_symlink(plug_in, folder.path() / "libdstrain_cuda.so");
  std::ofstream(folder.path() / "libnccl.so.2") << "no library";
  CHECK_THAT(
      said({.plug_ins = folder.path().string()}),
      ContainsSubstring("collectives go through host memory: ") && ContainsSubstring("too short"));
  CHECK_THAT(said({.more = {"NCCL_COMM_BLOCKING=1"}}),
             ContainsSubstring("collectives go through host memory: ") &&
                 ContainsSubstring("NCCL_COMM_BLOCKING is 1"));
  CHECK_THAT(
      said({.more = {"DSTRAIN_STAND_IN_REFUSES=ncclGetVersion 1",
                     "DSTRAIN_STAND_IN_REFUSES_RANK=1"}}),
      ContainsSubstring("collectives go through host memory: rank 1: ncclGetVersion: unhandled"));
}
