#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "runtime/rank/worker_env.h"
#include "tests/support/catch.h"
#include "tests/support/process_end.h"
#include "tests/support/rank_process.h"

using namespace dstrain;
namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using test::RankProcess;

/// Ranks that are processes of their own.
namespace {

struct Job {
  std::vector<int> ranks_per_node{1};
  std::string mode;
  int timeout_seconds = 300;
  std::string comm = "auto";
  int port = test::free_port();
};

RankProcess start_rank(const Job& job, test::RankPlace place) {
  place.port = job.port;
  place.timeout_seconds = job.timeout_seconds;
  std::vector<std::string> environment = test::environment_of(place);
  environment.push_back(fmt::format("{}={}", env::comm, job.comm));
  return RankProcess({{DSTRAIN_COMM_RANK, job.mode}, environment});
}

std::vector<RankProcess> start(const Job& job) {
  std::vector<RankProcess> ranks;
  for (const test::RankPlace& place : test::places_of(job.ranks_per_node)) {
    ranks.push_back(start_rank(job, place));
  }
  return ranks;
}

void check_sums(const std::vector<int>& nodes, const std::string& kind) {
  CAPTURE(nodes, kind);
  auto ranks = start({.ranks_per_node = nodes, .mode = "once", .comm = kind});
  const int world = static_cast<int>(ranks.size());
  double total = 0;
  for (int i = 0; i < 300'000; ++i) total += (i % 97 + 1) * world * (world + 1) / 2;
  for (int rank = 0; rank < world; ++rank) {
    RankProcess& process = ranks[static_cast<std::size_t>(rank)];
    const int half = (world + 1 - rank % 2) / 2;
    CHECK(process.read_line() == fmt::format("total {:.0f} half {}", total, half));
    CHECK(process.wait() == status::done);
  }
}

}  // namespace

TEST_CASE("Processes: meet and add up and split", "[comm]") {
  const auto [nodes, kind] =
      GENERATE(table<std::vector<int>, std::string>({{{1}, "auto"}, {{2}, "auto"}, {{3}, "shm"}}));
  check_sums(nodes, kind);
}

TEST_CASE("Processes: meet and add up and split over TCP", "[comm]") {
  const auto [nodes, kind] =
      GENERATE(table<std::vector<int>, std::string>({{{2}, "tcp"},
                                                     {{1, 1}, "auto"},
                                                     {{2, 1}, "auto"},
                                                     {{2, 2}, "tcp"},
                                                     {{2, 2}, "hierarchical"}}));
  check_sums(nodes, kind);
}

namespace {

void check_killed(const std::vector<int>& nodes, const std::string& kind) {
  const std::string mode = GENERATE("forever", "forever_large", "forever_unstaged");
  CAPTURE(nodes, kind, mode);
  auto ranks = start({.ranks_per_node = nodes, .mode = mode, .comm = kind});
  for (RankProcess& process : ranks) REQUIRE(process.read_line() == "running");
  const int pid = ranks[2].pid();
  // Into the middle of a message, if it is large.
  static std::mt19937 random(20'261'124);
  if (mode == "forever_large") test::wait_for_random_moment(pid, random, 80);
  ranks[2].kill();  // it stays a zombie until waited for: that is noticed as well
  // Who shares its node knows its process.
  const std::string gone = fmt::format("rank 2 (pid {}) is gone", pid);
  const std::string gone_elsewhere = kind == "shm" ? gone : "rank 2 is gone";
  for (const std::size_t rank : {0U, 1U}) {
    CHECK_THAT(ranks[rank].read_line(),
               ContainsSubstring(gone) || ContainsSubstring(gone_elsewhere));
    CHECK(ranks[rank].wait() == status::failed);
  }
  CHECK(ranks[2].wait() == -SIGKILL);
}

}  // namespace

TEST_CASE("Processes: a killed rank is named by the others", "[comm]") {
  check_killed({3}, "shm");
}

TEST_CASE("Processes: a killed rank is named over TCP", "[comm]") {
  check_killed({3}, "tcp");
  check_killed({2, 1}, "auto");
  check_killed({1, 2}, "auto");
}

namespace {

/// The ports at which a process listens, IPv4.
std::vector<int> listening_ports(int pid) {
  std::set<std::string> own;
  for (const auto& entry : fs::directory_iterator(fmt::format("/proc/{}/fd", pid))) {
    std::error_code closed_meanwhile;
    own.insert(fs::read_symlink(entry.path(), closed_meanwhile).string());
  }
  constexpr const char* listening = "0A";
  std::ifstream table(fmt::format("/proc/{}/net/tcp", pid));
  std::vector<int> ports;
  std::string line;
  for (std::getline(table, line); std::getline(table, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
        timeout >> inode;
    if (state != listening || !own.contains(fmt::format("socket:[{}]", inode))) continue;
    ports.push_back(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return ports;
}

/// Comes to the rendezvous and says what is no proof, or nothing.
std::vector<UniqueFd> send_strangers(int port) {
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 300; ++i) {
    Result<UniqueFd> socket = connect_tcp({"127.0.0.1", port}, Deadline::after(60));
    if (!socket.ok()) break;
    if (i % 2 == 0) send_all(socket.value().get(), random_bytes<200>(), Deadline::after(60));
    strangers.push_back(std::move(socket.value()));
  }
  return strangers;
}

}  // namespace

TEST_CASE("Processes: strangers can reach only the rendezvous and disturb no rank", "[comm]") {
  const Job job{.ranks_per_node = {2, 1}, .mode = "forever"};
  auto ranks = start(job);
  for (RankProcess& process : ranks) REQUIRE(process.read_line() == "running");
  CHECK(listening_ports(ranks[0].pid()) == std::vector<int>{job.port});
  CHECK(listening_ports(ranks[1].pid()).empty());
  CHECK(listening_ports(ranks[2].pid()).empty());
  const std::vector<UniqueFd> strangers = send_strangers(job.port);
  CHECK(strangers.size() == 300);
  ranks[2].kill();
  for (const std::size_t rank : {0U, 1U}) {  // which went on until then
    CHECK_THAT(ranks[rank].read_all(), ContainsSubstring("rank 2 is gone"));
  }
}

TEST_CASE("Processes: a rank that never comes is named", "[comm]") {
  const Job job{.ranks_per_node = {3}, .mode = "once", .timeout_seconds = 1};
  RankProcess first = start_rank(job, test::places_of(job.ranks_per_node)[0]);
  CHECK(first.read_line() == fmt::format("rendezvous timed out after 1 s at 127.0.0.1:{}: waiting "
                                         "for ranks 1 2; see that all are started and reach this "
                                         "address and port, or raise --timeout",
                                         job.port));
  CHECK(first.wait() == status::timed_out);
}

TEST_CASE("Processes: impossible settings are refused", "[comm]") {
  struct Row {
    std::vector<int> nodes;
    std::string comm;
    std::string message;
  };
  const auto row = GENERATE(
      Row{{1, 1}, "shm", "DSTRAIN_COMM=shm: the ranks are on 2 nodes and share no memory"},
      Row{{2}, "hierarchical", "DSTRAIN_COMM=hierarchical: all ranks are on one node: use shm"});
  auto ranks = start({.ranks_per_node = row.nodes, .mode = "once", .comm = row.comm});
  for (RankProcess& process : ranks) {
    CHECK(process.read_line() == row.message);
    CHECK(process.wait() == status::bad_input);
  }
}

TEST_CASE("Processes: ranks that choose different communicators are reported", "[comm]") {
  Job job{.ranks_per_node = {2}, .mode = "once", .comm = "tcp"};
  const auto places = test::places_of(job.ranks_per_node);
  RankProcess first = start_rank(job, places[0]);
  job.comm = "auto";
  RankProcess second = start_rank(job, places[1]);
  CHECK_THAT(first.read_line(), ContainsSubstring("ranks 0 and 1 differ in DSTRAIN_COMM"));
  CHECK(first.wait() == status::bad_input);
  CHECK_THAT(second.read_line(), ContainsSubstring("ranks 1 and 0 differ in DSTRAIN_COMM"));
  CHECK(second.wait() == status::bad_input);
}
