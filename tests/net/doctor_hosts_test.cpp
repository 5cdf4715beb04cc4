// dstrain doctor over real SSH servers.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/doctor_report.h"
#include "tests/net/link_end.h"
#include "tests/net/ssh_hosts.h"
#include "tests/net/two_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

using namespace dstrain::test;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;

namespace {

/// In place of ssh: hosts on this machine, of which "island" has a network of its own, to which
/// nothing leads.
constexpr const char* client = R"(#!/bin/sh
case $1 in island) apart="unshare -n" ;; esac
cd /
exec env -i PATH="$PATH" HOME=/ SSH_CONNECTION="127.0.0.1 1 127.0.0.1 22" $apart sh -c "$2"
)";

/// The one finding says that `host` cannot reach `other`, and at which port.
void check_unreached(const json& report, const std::string& host, const std::string& other) {
  const std::vector<json> ports = findings_of(report, host, "ports");
  INFO(host);
  REQUIRE(ports.size() == 1);
  CHECK(ports[0].at("level") == "problem");
  CHECK_THAT(ports[0].at("what").get<std::string>(),
             ContainsSubstring(host + " cannot reach " + other + ":") &&
                 !ContainsSubstring(other + ":0:"));
  CHECK_THAT(ports[0].at("fix").get<std::string>(), ContainsSubstring("firewall"));
}

}  // namespace

TEST_CASE("DoctorHosts: a pair that cannot meet is named with the port", "[net]") {
  if (const auto refusal = TwoNodes::refusal()) skip(*refusal);
  const TempDir folder;
  const std::string file = folder.path() / "hosts";
  const std::string program = folder.path() / "client";
  std::ofstream(file) << "near slots=1\nisland slots=1\nother slots=1\n";
  std::ofstream(program) << client;
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const Outcome outcome =
      run_command({"doctor", "--json", "--hostfile", file, "--ssh_command", program});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 1);
  const json report = json::parse(outcome.out);
  check_unreached(report, "near", "island");
  check_unreached(report, "other", "island");
  CHECK(findings_of(report, "island", "ports").size() == 2);
}

TEST_CASE("DoctorHosts: hosts behind sshd are checked although one is down", "[net][ssh]") {
  need_sshd();
  const SshHosts hosts;
  hosts.user().configure("Host down\n  HostName 127.0.0.1\n  Port 1\n");
  const TempDir folder;
  const std::string file = folder.path() / "hosts";
  std::ofstream(file) << "h0 slots=2\ndown slots=1\nh1 slots=2\n";
  const Outcome outcome = run_command({"doctor", "--hostfile", file, "--json"});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.status == 1);
  const json report = json::parse(outcome.out);
  REQUIRE(report.at("hosts").size() == 4);
  const std::vector<json> down = findings_of(report, "down", "reachable");
  REQUIRE(down.size() == 1);
  CHECK(down[0].at("level") == "problem");
  CHECK_THAT(down[0].at("what").get<std::string>(), ContainsSubstring("Connection refused"));
  CHECK_FALSE(down[0].at("fix").get<std::string>().empty());
  for (const char* host : {"h0", "h1"}) {
    INFO(host);
    CHECK(findings_of(report, host, "programs").at(0).at("level") == "ok");
    CHECK(findings_of(report, host, "clock").at(0).at("level") == "ok");
    const std::vector<json> ports = findings_of(report, host, "ports");
    REQUIRE(ports.size() == 1);
    CHECK(ports[0].at("what") == "reaches 1 other host");
  }
  CHECK(hosts.nothing_left());
}
