#include "runtime/rank/slurm_host_list.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <tuple>

#include <unistd.h>

#include <fmt/ranges.h>

#include "tests/support/catch.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace dstrain {
namespace {

using Hosts = std::vector<std::string>;

std::string expanded(const std::string& list) {
  const Result<Hosts> hosts = expand_host_list(list);
  REQUIRE(hosts.ok());
  return fmt::format("{}", fmt::join(hosts.value(), " "));
}

/// SLURM's own reading; needs a configuration, but no cluster.
class Scontrol {
 public:
  Scontrol() {
    std::ofstream(folder_.path() / "slurm.conf")
        << "ClusterName=c\nSlurmctldHost=localhost\nNodeName=a\nPartitionName=p Nodes=a\n";
  }
  [[nodiscard]] std::string expand(const std::string& list) const {
    const std::string command =
        fmt::format("SLURM_CONF={}/slurm.conf scontrol show hostnames '{}' 2>/dev/null",
                    folder_.path().string(), list);
    FILE* const pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) fail_errno(errno, "popen scontrol");
    std::string text;
    std::array<char, 4096> buffer;
    for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
      text.append(buffer.data(), got);
    }
    const int status = ::pclose(pipe);
    if (status != 0) fail(ErrorCode::io, "{} ended with {}", command, status);
    return text;
  }

 private:
  test::TempDir folder_;
};

std::string random_number(std::mt19937& random) {
  const int width = static_cast<int>(random() % 4);
  return fmt::format("{:0{}}", random() % 120, width);
}

/// A range that goes up, in one of the ways in which people write it.
std::string random_range(std::mt19937& random) {
  const std::size_t first = random() % 110;
  const int width = static_cast<int>(random() % 4);
  if (random() % 3 == 0) return random_number(random);
  return fmt::format("{:0{}}-{:0{}}", first, width, first + random() % 5,
                     random() % 2 == 0 ? 0 : width);
}

std::string random_word(std::mt19937& random) {
  constexpr std::array<const char*, 6> texts{"n", "rack-", "7", "a0", "gpu.x", "_"};
  std::string word = texts[random() % texts.size()];
  const std::size_t brackets = random() % 5;
  for (std::size_t at = 0; at < brackets; ++at) {
    std::string ranges = random_range(random);
    for (std::size_t more = random() % 3; more > 0; --more) {
      ranges += fmt::format(",{}", random_range(random));
    }
    word += fmt::format("[{}]", ranges);
    if (at + 1 < brackets && random() % 2 == 0) word += texts[random() % texts.size()];
  }
  return word;
}

}  // namespace

TEST_CASE("Slurm host list: expands as SLURM does", "[base][slurm_host_list]") {
  // What `scontrol show hostnames` of SLURM 22.05 prints for each.
  const auto [list, hosts] = GENERATE(table<const char*, const char*>({
      {"", ""},
      {"login", "login"},
      {"a,b, c\td\n", "a b c d"},
      {"a,,b,", "a b"},
      {"a[1-3,2]", "a1 a2 a3 a2"},
      {"a[3,1,2]", "a3 a1 a2"},
      {"n[001-003,7]-ib[0-1],login",
       "n001-ib0 n001-ib1 n002-ib0 n002-ib1 n003-ib0 n003-ib1 "
       "n7-ib0 n7-ib1 login"},
      {"rack[1-2]n[09-11]", "rack1n09 rack1n10 rack1n11 rack2n09 rack2n10 rack2n11"},
      {"a[1-02]", "a1 a2"},
      {"a[01-2]", "a01 a02"},
      {"a[09-10]", "a09 a10"},
      {"a[099-100]", "a099 a100"},
      {"n[0-1,00-01]", "n0 n1 n00 n01"},
      {"[1-3]", "1 2 3"},
      {"a[1][2][3]", "a123"},
      {"a1b[1-2],a1b3", "a1b1 a1b2 a1b3"},
      {"a[1-2]b[3-4]c[5-6]", "a1b3c5 a1b3c6 a2b3c5 a2b3c6 a1b4c5 a1b4c6 a2b4c5 a2b4c6"},
      {"n[99999998-100000001]", "n99999998 n99999999 n100000000 n100000001"},
      {"n[018446744073709551615]", "n018446744073709551615"},
      {"x1,x2,x2,x1", "x1 x2 x2 x1"},
  }));
  CAPTURE(list);
  CHECK(expanded(list) == hosts);
}

TEST_CASE("Slurm host list: invalid lists are refused", "[base][slurm_host_list]") {
  const auto [list, reason] = GENERATE(table<const char*, const char*>({
      {"a[1", "a bracket without its other one"},
      {"a]", "a bracket without its other one"},
      {"a[1-2]]", "a bracket without its other one"},
      {"a]1[", "a bracket without its other one"},
      {"a[]", "\"\" is not a range"},
      {"a[1,]", "\"\" is not a range"},
      {"a[1,b]", "\"b\" is not a range"},
      {"a[3-]", "\"3-\" is not a range"},
      {"a[-3]", "\"-3\" is not a range"},
      {"a[1--2]", "\"1--2\" is not a range"},
      {"a[1 ,2]", "\"1 \" is not a range"},
      {"a[10-8]", "\"10-8\" is not a range"},
      {"a[[1-2]]", "\"[1-2\" is not a range"},
      {"b,a[1-2].example.com", "\".example.com\" follows the last bracket"},
      {"n[0-99999999]", "\"0-99999999\" is not a range of at most 65536"},
      {"n[0-18446744073709551615]", "is not a range"},
      {"n[0-40000,1-40000]", "\"1-40000\" is not a range of at most 65536"},
      {"n[1-9999][1-9999][1-9999][1-9999][1-9999]", "more than 65536 hosts"},
      {"a[1-40000],b[1-40000]", "\"b[1-40000]\": more than 65536 hosts"},
  }));
  CAPTURE(list);
  const Result<Hosts> hosts = expand_host_list(list);
  REQUIRE_FALSE(hosts.ok());
  CHECK_THAT(hosts.error(), Catch::Matchers::ContainsSubstring(reason));
}

TEST_CASE("HostList: tasks per node are expanded", "[base][slurm]") {
  CHECK(expand_task_counts("2(x3),1").value() == std::vector<int>{2, 2, 2, 1});
  CHECK(expand_task_counts("4").value() == std::vector<int>{4});
  for (const char* const bad : {"", "x", "0", "2(x", "2(x3", "2(x0)", "2,", "2(x99999999)", "-1"}) {
    CAPTURE(bad);
    CHECK_FALSE(expand_task_counts(bad).ok());
  }
}

TEST_CASE("Slurm host list: random lists expand as by scontrol", "[base][slurm_host_list]") {
  if (::access("/usr/bin/scontrol", X_OK) != 0) test::skip("no scontrol (Debian: slurm-client)");
  const Scontrol scontrol;
  for (unsigned seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    std::string list = random_word(random);
    for (std::size_t more = random() % 4; more > 0; --more) {
      list += fmt::format(",{}", random_word(random));
    }
    CAPTURE(seed, list);
    const Result<Hosts> hosts = expand_host_list(list);
    REQUIRE(hosts.ok());
    std::string lines;
    for (const std::string& host : hosts.value()) lines += host + "\n";
    REQUIRE(lines == scontrol.expand(list));
  }
}

}  // namespace dstrain
