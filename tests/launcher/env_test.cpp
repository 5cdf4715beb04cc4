#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "launcher/agent/port.h"
#include "launcher/plan/dry_run.h"
#include "launcher/plan/job_env.h"
#include "runtime/base/error.h"
#include "runtime/os/file.h"
#include "runtime/os/socket.h"
#include "runtime/rank/rank_nodes.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

/// From now on this process is on a system without locks of open files, as gVisor.
bool forbid_file_locks() {
  std::array filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 3),
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{filter.size(), filter.data()};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("EnvFile: the word export is ignored", "[launcher][env]") {
  std::vector<std::string> warnings;
  const auto variables = parse_env_file("export A=1\nexport  B=2\n", "f", warnings);
  REQUIRE(variables.size() == 2);
  CHECK(variables[0].name == "A");
  CHECK(variables[1].name == "B");
  CHECK(variables[1].value == "2");
}

TEST_CASE("EnvFile: lines and comments and blanks", "[launcher]") {
  std::vector<std::string> warnings;
  const auto variables =
      parse_env_file("# c\n\nA=1\n  B = x y=\"z\" \r\nC=\nA=2\nD=$5;`x`\n", "f", warnings);
  const std::vector<EnvVar> expected{{"A", "2"}, {"B", "x y=\"z\""}, {"C", ""}, {"D", "$5;`x`"}};
  CHECK(variables == expected);
  CHECK(warnings.empty());
  for (const char* bad : {"A", "=1", "1A=2", "A B=1", "export A", "A-B=1"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(parse_env_file(fmt::format("\n{}", bad), "f", warnings),
                      "f:2: a line must be NAME=VALUE");
  }
}

TEST_CASE("EnvFile: quotes around a value are not a part of it", "[launcher][env]") {
  struct Row {
    std::string line, value, warned;
  };
  const auto warning = [](std::string name) {
    return "f:1: " + name +
           ": its $ is passed on unchanged, since no shell reads this file; write the value "
           "itself, "
           "or pass --env " +
           name + "=..., which your shell expands";
  };
  const Row row = GENERATE_COPY(values<Row>({
      {R"(A="a b")", "a b", ""},
      {"A='a b'", "a b", ""},
      {R"(export A = "" )", "", ""},
      {R"(A=")", "\"", ""},
      {R"(A="a' )", "\"a'", ""},
      {R"(A="a" "b")", R"("a" "b")", ""},
      {R"(A="{"b": 1}")", R"("{"b": 1}")", ""},
      {"A='$HOME/x'", "$HOME/x", ""},
      {R"(PATH="/opt/bin:$PATH")", "/opt/bin:$PATH", warning("PATH")},
      {"A=${HOME}", "${HOME}", warning("A")},
      {"A=$(hostname);`x`", "$(hostname);`x`", warning("A")},
  }));
  CAPTURE(row.line);
  std::vector<std::string> warnings;
  const auto variables = parse_env_file(row.line, "f", warnings);
  REQUIRE(variables.size() == 1);
  CHECK(variables[0].value == row.value);
  CHECK(warnings == (row.warned.empty() ? std::vector<std::string>{} : std::vector{row.warned}));
}

TEST_CASE("EnvFile: the current directory wins over home", "[launcher]") {
  const test::TempDir home;
  const test::TempDir here;
  write_text_file(home.path() / ".deepspeed_env", "A=home\nB=home\n");
  write_text_file(home.path() / ".dstrain_env", "B=home2\n");
  write_text_file(here.path() / ".deepspeed_env", "A=here\n");
  const std::vector<EnvVar> expected{{"A", "here"}, {"B", "home2"}};
  std::vector<std::string> warnings;
  CHECK(read_env_files(home.path(), here.path(), warnings) == expected);
  CHECK(read_env_files({}, home.path() / "absent", warnings).empty());
}

TEST_CASE("JobEnv: ranks get the names of the hosts if there are several", "[launcher]") {
  const auto nodes_of = [](std::vector<HostSlots> hosts) -> std::string {
    for (const EnvVar& variable : job_environment({}, HostPlan(std::move(hosts)), {"job", "t"})) {
      if (variable.name == env::nodes) return variable.value;
    }
    return "(absent)";
  };
  CHECK(nodes_of({{"w0", {0, 1}}, {"w1", {3}}}) == "w0*2,w1*1");
  CHECK(nodes_of({{"node0", {0}, true}, {"node1", {0}, true}}) == "*1,*1");
  CHECK(nodes_of({{"localhost", {0, 1}}}) == "(absent)");
}

TEST_CASE("JobEnv: the job's own variables win", "[launcher]") {
  const HostPlan plan({{"localhost", {0, 1}}});
  const std::vector<std::string> words{
      "--env",           "WORLD_SIZE=1", "--env",         "X=y=z", "--timeout", "5",
      "--device_memory", "1KiB",         "--host_memory", "2KiB",  "p"};
  const auto options = parse_command_line(words).options;
  const auto env = job_environment(options, plan, {"job", "token"});
  const auto value = [&](std::string_view name) -> std::string {
    for (const EnvVar& variable : env) {
      if (variable.name == name) return variable.value;
    }
    return "(absent)";
  };
  CHECK(value("WORLD_SIZE") == "2");
  CHECK(value("CROSS_SIZE") == "1");
  CHECK(value("X") == "y=z");
  CHECK(value("DSTRAIN_JOB") == "job");
  CHECK(value("DSTRAIN_TIMEOUT") == "5");
  CHECK(value("DSTRAIN_DEVICE_MEMORY") == "1024");
  CHECK(value("DSTRAIN_HOST_MEMORY") == "2048");
  CHECK(value("CUDA_VISIBLE_DEVICES") == "(absent)");

  LaunchOptions unset;
  unset.env = {"DSTRAIN_SURELY_NOT_SET"};
  CHECK_THROWS_AS(job_environment(unset, plan, {}), Error);
  unset.env = {"1=2"};
  CHECK_THROWS_AS(job_environment(unset, plan, {}), Error);
}

TEST_CASE("JobEnv: which variables are passed on and which value wins", "[launcher]") {
  const HostPlan plan({{"localhost", {0, 1}}});
  constexpr std::array names{
      "NCCL_T",         "UCX_T",     "MV2_T",    "MLFLOW_T",   "PYTHON_T",
      "OMP_T",          "DSTRAIN_T", "ONEDNN_T", "DNNL_T",     "MALLOC_T",
      "GLIBC_TUNABLES", "CUDA_T",    "CUBLAS_T", "CUBLASLT_T", "NVIDIA_TF32_OVERRIDE"};
  for (const char* const name : names) ::setenv(name, "travels", 1);
  ::setenv("HOME_T", "stays", 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  ::setenv("DSTRAIN_TIMEOUT", "5", 1);
  ::setenv("DSTRAIN_DEVICE", "", 1);
  const auto value = [&](const LaunchOptions& options, std::string_view name) -> std::string {
    for (const EnvVar& variable : job_environment(options, plan, {"job", "token"})) {
      if (variable.name == name) return variable.value;
    }
    return "(absent)";
  };
  for (const char* const name : names) CHECK(value({}, name) == "travels");
  CHECK(value({}, "HOME_T") == "(absent)");
  CHECK(value({}, "CUDA_VISIBLE_DEVICES") == "(absent)");
  CHECK(value({}, "DSTRAIN_TIMEOUT") == "5");
  LaunchOptions typed;
  typed.env = {"DSTRAIN_TIMEOUT=7"};
  CHECK(value(typed, "DSTRAIN_TIMEOUT") == "7");
  typed.timeout_seconds = 9;
  CHECK(value(typed, "DSTRAIN_TIMEOUT") == "9");
  typed.env = {"DSTRAIN_DEVICE=cuda"};
  CHECK_THROWS_WITH(value(typed, "DSTRAIN_DEVICE"),
                    Catch::Matchers::ContainsSubstring("pass --device"));
  for (const char* const name : names) ::unsetenv(name);
  for (const char* const name :
       {"HOME_T", "DSTRAIN_TIMEOUT", "DSTRAIN_DEVICE", "CUDA_VISIBLE_DEVICES"}) {
    ::unsetenv(name);
  }
}

TEST_CASE("JobEnv: random tokens have 256 bits and differ", "[launcher]") {
  const std::string token = random_hex(32);
  CHECK(token.size() == 64);
  CHECK(token.find_first_not_of("0123456789abcdef") == token.npos);
  CHECK(token != random_hex(32));
}

TEST_CASE("DryRun: one JSON object without secrets", "[launcher]") {
  const Resources resources{HostPlan({{"w0", {0, 1, 3}}, {"w1", {2}}}), {true, true}, {}, {}, {}};
  JobSpec job;
  job.command = {"/usr/bin/python3", {"python3", "-u", "t.py", "a \"b\"", "\xff"}, 3};
  job.env = {{"DSTRAIN_TOKEN", "canary"}, {"HF_TOKEN", "canary"}, {"PLAIN", "shown"}};
  job.ranks = rank_environments(resources.plan);
  const std::string text = dry_run_json({resources, "w0", 29500, {job}});
  CHECK(text.find("canary") == text.npos);
  CHECK(text.find('\n') == text.npos);
  const auto json = nlohmann::json::parse(text);
  CHECK(json["launcher"] == "ssh");
  CHECK(json["world_size"] == 4);
  CHECK(json["master_addr"] == "w0");
  CHECK(json["master_port"] == 29500);
  CHECK(json["hosts"][0] ==
        nlohmann::json({{"host", "w0"}, {"slots", {0, 1, 3}}, {"ranks", {0, 1, 2}}}));
  CHECK(json["hosts"][1]["ranks"] == nlohmann::json({3}));
  REQUIRE(json["commands"].size() == 4);
  CHECK(json["commands"][2][3] == "--local_rank=2");
  CHECK(json["commands"][3][3] == "--local_rank=0");
  CHECK(json["commands"][0][4] == "a \"b\"");
  CHECK(json["env"]["PLAIN"] == "shown");
}

TEST_CASE("Port: two jobs never get the same one", "[launcher]") {
  const std::string address = GENERATE("", "127.0.0.1", "localhost");
  ReservedPort first = reserve_port({29500, PortRule::first_free, address});
  SECTION("as an agent listens there") {
    first.claim.reset();
  }
  SECTION("nor while a program has not begun to listen") {
    first.listener.reset();
  }
  const ReservedPort second = reserve_port({29500, PortRule::first_free, address});
  CHECK(first.port != second.port);
  CHECK_THROWS_AS(reserve_port({first.port, PortRule::typed, address}), Error);
}

TEST_CASE("Port: is found even if files cannot be locked", "[launcher]") {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 2;
    try {
      status = forbid_file_locks() && reserve_port({29500, PortRule::first_free, ""}).port ? 0 : 1;
    } catch (const Error&) {
    }
    ::_exit(status);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("Port: a reserved port cannot be shared by other sockets", "[launcher]") {
  const ReservedPort reserved = reserve_port({29500, PortRule::first_free, "127.0.0.1"});
  const std::uint32_t address = GENERATE(INADDR_LOOPBACK, INADDR_ANY);
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(address);
  place.sin_port = htons(static_cast<std::uint16_t>(reserved.port));
  CHECK(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0);
}

TEST_CASE("Port: an address of another machine is left to rank 0", "[launcher]") {
  // A port that no other job of this user has: the kernel gives it to nobody else meanwhile.
  const UniqueFd holder = std::move(listen_tcp({"127.0.0.1", 0}).value());
  const int port = bound_port(holder.get());
  const ReservedPort reserved = reserve_port({port, PortRule::first_free, "192.0.2.77"});
  CHECK(reserved.port == port);
  CHECK_FALSE(reserved.listener);
}

TEST_CASE("Port: the search stays in the given range", "[launcher]") {
  const ReservedPort taken = reserve_port({29500, PortRule::first_free, ""});
  const int port = taken.port;
  const ReservedPort next = reserve_port({port, PortRule::first_free, "127.0.0.1", port + 100});
  CHECK(next.port > port);
  const PortRequest full =
      decode_port_request(encode_port_request({port, PortRule::first_free, "127.0.0.1", port}));
  CHECK_THROWS_WITH(reserve_port(full),
                    fmt::format("no port of {0}-{0} is free; widen --port_range", port));
}

TEST_CASE("Port: the error for a port in use depends on who chose it", "[launcher]") {
  const ReservedPort taken = reserve_port({29500, PortRule::first_free, ""});
  const int port = taken.port;
  const std::string typed = fmt::format("--master_port {}: the port is in use; ", port);
  const std::vector<std::pair<PortRule, std::string>> cases{
      {PortRule::typed, typed + "pass another, or leave it out to use a free one"},
      {PortRule::typed_to_all, typed + "pass another to all launchers"},
      {PortRule::default_of_all, fmt::format("port {} (the default of --master_port) is in use; "
                                             "pass another --master_port to all launchers",
                                             port)},
  };
  for (const auto& [rule, told] : cases) {
    const PortRequest request = decode_port_request(encode_port_request({port, rule, "127.0.0.1"}));
    CHECK(request.address == "127.0.0.1");
    CHECK_THROWS_WITH(reserve_port(request), told);
  }
}

TEST_CASE("Port: a listening port is in use and a closed one is not", "[launcher]") {
  const std::string address = GENERATE("", "127.0.0.1");
  Result<UniqueFd> made = listen_tcp({"127.0.0.1", 0});
  UniqueFd listener = std::move(made.value());
  const int port = bound_port(listener.get());
  CHECK_THROWS_AS(reserve_port({port, PortRule::typed, address}), Error);
  Result<UniqueFd> client = connect_tcp({"127.0.0.1", port}, Deadline::after(60));
  UniqueFd guest(::accept(listener.get(), nullptr, nullptr));
  REQUIRE(guest);
  guest.reset();  // who closes first waits out the end of the connection
  char byte = 0;
  REQUIRE(::recv(client.value().get(), &byte, 1, 0) == 0);
  client.value().reset();
  listener.reset();
  CHECK(reserve_port({port, PortRule::typed, address}).port == port);
}
