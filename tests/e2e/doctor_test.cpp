// dstrain doctor from outside: on this machine, and on hosts that a program in place of ssh leads
// to.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/doctor_report.h"
#include "tests/e2e/fake_hosts.h"
#include "tests/support/catch.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::FakeHosts;
using test::findings_of;
using test::Outcome;
using test::run_command;

namespace {

/// Looks at the hosts of a hostfile; the words of the user come last.
Outcome look_at(const FakeHosts& hosts, const std::vector<std::string>& more) {
  std::vector<std::string> words{"doctor", "--hostfile", hosts.folder() / "hosts", "--ssh_command",
                                 hosts.folder() / "client"};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

/// What must hold of every report, whatever the machine is like.
json checked_report(const Outcome& outcome) {
  INFO(outcome.out << outcome.err);
  const json report = json::parse(outcome.out);
  int problems = 0;
  for (const json& host : report.at("hosts")) {
    for (const json& finding : host.at("findings")) {
      INFO(host.at("host") << ": " << finding.dump());
      const std::string level = finding.at("level");
      CHECK((level == "ok" || level == "note" || level == "problem"));
      CHECK_FALSE(finding.at("check").get<std::string>().empty());
      CHECK_FALSE(finding.at("what").get<std::string>().empty());
      problems += level == "problem" ? 1 : 0;
      if (level == "problem") CHECK_FALSE(finding.at("fix").get<std::string>().empty());
    }
  }
  CHECK(report.at("problems") == problems);
  CHECK(outcome.status == (problems > 0 ? 1 : 0));
  return report;
}

std::vector<std::string> host_names(const json& report) {
  std::vector<std::string> names;
  for (const json& host : report.at("hosts")) names.push_back(host.at("host"));
  return names;
}

/// The one finding says so.
void check_problem(const json& report,
                   const std::string& host,
                   const std::string& check,
                   const std::string& what) {
  const std::vector<json> found = findings_of(report, host, check);
  INFO(host << ": " << check);
  REQUIRE(found.size() == 1);
  CHECK(found[0].at("level") == "problem");
  CHECK_THAT(found[0].at("what").get<std::string>(), ContainsSubstring(what));
}

}  // namespace

TEST_CASE("Doctor: every group of checks runs on this machine", "[e2e]") {
  const json report = checked_report(run_command({"doctor", "--json"}));
  REQUIRE(report.at("hosts").size() == 1);
  const std::string host = host_names(report)[0];
  for (const char* check : {"programs", "libraries", "processor", "free_memory", "memory_file",
                            "open_files", "io_uring", "disks", "host_name", "leftover_processes"}) {
    INFO(check);
    CHECK_FALSE(findings_of(report, host, check).empty());
  }
  CHECK(findings_of(report, host, "programs")[0].at("level") == "ok");
  CHECK(findings_of(report, host, "leftover_processes").size() == 1);
}

TEST_CASE("Doctor: the table and the JSON agree", "[e2e]") {
  const Outcome table = run_command({"doctor"});
  CHECK((table.status == 0 || table.status == 1));
  CHECK(table.err.empty());
  CHECK_THAT(table.out, ContainsSubstring("  programs     programs"));
  CHECK_THAT(table.out,
             ContainsSubstring(table.status == 0 ? "no problem on 1 host\n" : " on 1 host\n"));
  CHECK_THAT(run_command({"--help"}).out, ContainsSubstring("  doctor  "));
  CHECK(run_command({"doctor", "--help"}).status == 0);
}

TEST_CASE("Doctor: problems of a remote shell are found from outside", "[e2e]") {
  const test::TempDir folder;
  const std::string runtime = (folder.path() / "run").string();
  std::filesystem::create_directory(runtime);
  std::filesystem::permissions(runtime, std::filesystem::perms::all);
  test::Launch::Options options;
  options.env = {{"RANK", "1"},
                 {"WORLD_SIZE", "2"},
                 {"OMP_NUM_THREADS", "many"},
                 {"CUDA_VISIBLE_DEVICES", "all"},
                 {"SSH_AUTH_SOCK", runtime + "/none"},
                 {"XDG_RUNTIME_DIR", runtime}};
  const std::string absent = (folder.path() / "absent").string();
  const json report = checked_report(run_command({"doctor", "--json", "--path", absent}, options));
  const std::string host = host_names(report)[0];
  check_problem(report, host, "rank_variables", "RANK, WORLD_SIZE");
  check_problem(report, host, "threads", "many");
  check_problem(report, host, "visible_devices", "all");
  check_problem(report, host, "ssh_agent", "none");
  check_problem(report, host, "runtime_directory", runtime);
  const std::vector<json> disks = findings_of(report, host, "disks");
  CHECK(std::ranges::any_of(disks, [&](const json& finding) {
    return finding.at("what") == absent + " does not exist";
  }));
}

TEST_CASE("Doctor: hosts that cannot be reached stand beside those that can", "[e2e]") {
  const FakeHosts hosts(
      "n0 slots=1\nrefuse slots=1\nabsent slots=2\nold slots=1\ngarbage slots=1\nnoisy slots=1\n");
  const Outcome outcome = look_at(hosts, {"--json"});
  const json report = checked_report(outcome);
  CHECK(outcome.status == 1);
  CHECK(report.at("hosts").size() == 7);  // and this machine
  check_problem(report, "refuse", "reachable", "Connection refused");
  check_problem(report, "absent", "reachable", "--copy_binary");
  check_problem(report, "old", "same_version", "version 0.0");
  CHECK(findings_of(report, "garbage", "reachable").size() == 1);
  for (const char* host : {"n0", "noisy"}) {
    INFO(host);
    CHECK(findings_of(report, host, "reachable").empty());
    CHECK(findings_of(report, host, "programs").at(0).at("level") == "ok");
    CHECK(findings_of(report, host, "clock").at(0).at("level") == "ok");
  }
}

TEST_CASE("Doctor: host options may precede the command", "[e2e]") {
  const FakeHosts hosts("n0 slots=1\nn1 slots=1\nn2 slots=1\n");
  const json report = checked_report(
      run_command({"-H", hosts.folder() / "hosts", "--ssh_command", hosts.folder() / "client",
                   "doctor", "--json", "--include", "n0@n2"}));
  const std::vector<std::string> names = host_names(report);
  REQUIRE(names.size() == 3);
  CHECK(names[1] == "n0");
  CHECK(names[2] == "n2");
}

TEST_CASE("Doctor: a host that never answers costs only its timeout", "[e2e]") {
  const FakeHosts hosts("stall slots=1\n");
  const Outcome outcome = look_at(hosts, {"--json", "--timeout", "2"});
  const json report = checked_report(outcome);
  CHECK(outcome.status == 1);
  check_problem(report, "stall", "reachable", "did not answer within 2 s");
}

TEST_CASE("Doctor: variables left over from a starter are found", "[e2e]") {
  const auto report_with = [](std::vector<launcher::EnvVar> env) {
    test::Launch::Options options;
    options.env = std::move(env);
    return checked_report(run_command({"doctor", "--json"}, options));
  };
  const std::vector<launcher::EnvVar> openmpi{{"OMPI_COMM_WORLD_SIZE", "2"},
                                              {"OMPI_COMM_WORLD_RANK", "1"}};
  const json left = report_with(openmpi);
  check_problem(left, host_names(left)[0], "starter_variables", "OMPI_COMM_WORLD_SIZE=2");
  const json partial = report_with({{"TORCHELASTIC_RUN_ID", "7"}});
  check_problem(partial, host_names(partial)[0], "starter_variables", "RANK is not");
  const json foreign = report_with({{"PMI_SIZE", "4"}});
  check_problem(foreign, host_names(foreign)[0], "starter_variables", "PMI_SIZE=4");
  const json alone = report_with({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}});
  CHECK(findings_of(alone, host_names(alone)[0], "starter_variables").empty());

  // A task of mpirun is told nothing: they are its own.
  const test::TempDir folder;
  const std::filesystem::path starter = folder.path() / "hydra_pmi_proxy";
  std::ofstream(starter) << "#!/bin/sh\n\"$@\"\nexit $?\n";
  std::filesystem::permissions(starter, std::filesystem::perms::owner_all);
  test::Launch::Options options;
  options.env = openmpi;
  options.wrapper = {starter.string()};
  const json task = checked_report(run_command({"doctor", "--json"}, options));
  CHECK(findings_of(task, host_names(task)[0], "starter_variables").empty());
}

TEST_CASE("Doctor: variables that a launch or a rank would refuse are found", "[e2e]") {
  const std::vector<launcher::EnvVar> wrong{{"DSTRAIN_IO", "fast"},     {"DSTRAIN_COMM", "pigeon"},
                                            {"DSTRAIN_SILENCE", "x"},   {"DSTRAIN_TIMEOUT", "soon"},
                                            {"MASTER_PORT", "seventy"}, {"DSTRAIN_DEVICE", "tpu"}};
  for (const launcher::EnvVar& variable : wrong) {
    CAPTURE(variable.name);
    test::Launch::Options options;
    options.env = {variable};
    const json report = checked_report(run_command({"doctor", "--json"}, options));
    check_problem(report, host_names(report)[0], "dstrain_variables", variable.value);
  }
}

TEST_CASE("Doctor: words that it does not know are refused", "[e2e]") {
  struct Row {
    std::vector<std::string> words;
    std::string message;
  };
  const std::vector<Row> rows{
      {{"--num_gpus", "2"}, "doctor: unknown option --num_gpus; see dstrain doctor --help"},
      {{"now", "2"}, "doctor: \"now\" does not belong here; see dstrain doctor --help"},
      {{"--jsn"}, "doctor: unknown option --jsn; did you mean --json?"},
      {{"--path", ""}, "doctor: --path: is empty"},
      {{"--timeout", "abc"}, "--timeout: must be a number, got \"abc\""},
      {{"--this_host"}, "only dstrain doctor starts this"},
      {{"--hostfile", "/no/such/file"}, "/no/such/file"}};
  for (const Row& row : rows) {
    std::vector<std::string> words{"doctor"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const Outcome outcome = run_command(words);
    CHECK(outcome.status == 2);
    CHECK(outcome.out.empty());
    CHECK_THAT(outcome.err, ContainsSubstring(row.message));
  }
}

TEST_CASE("Doctor: an interrupted check leaves nothing running", "[e2e]") {
  const FakeHosts hosts("stall slots=1\n");
  test::Launch launch({"doctor", "--hostfile", hosts.folder() / "hosts", "--ssh_command",
                       hosts.folder() / "client"});
  REQUIRE(launch.wait_until([&] { return launch.processes().size() > 3; }));
  launch.signal(SIGINT);
  CHECK(launch.wait() == 130);
  CHECK(launch.nothing_left());
}
