// dstrain status, save and stop, on jobs that run.
#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fmt/format.h>

#include "runtime/checkpoint/catalog.h"
#include "runtime/os/file.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"
#include "tests/e2e/fake_hosts.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/count_from.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Launch;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

/// A runtime directory of its own.
class Session {
 public:
  [[nodiscard]] Launch::Options options() const {
    return {.env = {{"XDG_RUNTIME_DIR", folder_.path().string()}, {"OMP_NUM_THREADS", "1"}},
            .directory = test::golden_folder.string()};
  }
  [[nodiscard]] test::Outcome run(Words words) const {
    return test::run_command(std::move(words), options());
  }
  /// An endless training; returns once it has taken a step.
  [[nodiscard]] std::unique_ptr<Launch> train(Words more = {}) const {
    const test::ResumableRun run{.ranks = 2, .stage = 2};
    Words words{"--num_gpus", "2", "train", "--output_dir", output().string()};
    for (const std::string& word : run.arguments(1'000'000)) words.push_back(word);
    words.insert(words.end(), {"--per_device_train_batch_size", "6", "--save_steps", "0"});
    words.insert(words.end(), more.begin(), more.end());
    auto launch = std::make_unique<Launch>(words, options());
    REQUIRE(launch->wait_for_output("step 1/"));
    return launch;
  }
  [[nodiscard]] fs::path output() const { return folder_.path() / "out"; }
  [[nodiscard]] fs::path sockets() const { return folder_.path() / "dstrain"; }

 private:
  test::TempDir folder_;
};

/// The path of the only socket.
fs::path socket_of(const Session& session) {
  REQUIRE(!fs::is_empty(session.sockets()));
  return fs::directory_iterator(session.sockets())->path();
}

/// Its job; `status` without a name also lists the user's jobs of other sessions.
std::string job_of(const Session& session) {
  return socket_of(session).stem().string();
}

UniqueFd connect_to(const fs::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.string().size() < sizeof address.sun_path);
  path.string().copy(address.sun_path, path.string().size());
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

using Launches = std::vector<std::unique_ptr<Launch>>;

/// Two nodes of a rank each, whose launchers are started by hand with these training options.
Launches start_by_hand(const test::TempDir& folder, const std::array<Words, 2>& arguments) {
  const std::string port = std::to_string(test::free_port());
  Launches launches;
  for (int node = 0; node < 2; ++node) {
    Words words{"--no_ssh",           "--num_nodes",        "2",  "--node_rank",
                std::to_string(node), "--num_gpus",         "1",  "--master_addr",
                "127.0.0.1",          "--master_port",      port, "train",
                "--output_dir",       folder.path() / "out"};
    const Words& more = arguments.at(static_cast<std::size_t>(node));
    words.insert(words.end(), more.begin(), more.end());
    Launch::Options options{.env = {{"DSTRAIN_TOKEN", "shared"}},
                            .directory = test::golden_folder.string()};
    launches.push_back(std::make_unique<Launch>(words, options));
  }
  return launches;
}

/// All are refused, with these words.
void check_told(const Launches& launches, const std::string& told) {
  for (const auto& launch : launches) {
    CHECK(launch->wait() == 2);
    CAPTURE(launch->err());
    CHECK(launch->err().find(told) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("Job: a training answers status and save and stop", "[e2e][job]") {
  const Session session;
  const auto launch = session.train();
  const std::string output = session.output().string();
  const json status = json::parse(session.run({"status", output, "--json"}).out);
  CHECK(status.at("state") == "running");
  CHECK(status.at("step") > 0);
  CHECK(status.at("steps") == 1'000'000);
  CHECK(status.at("loss").is_number());
  CHECK(status.at("tokens_per_second") > 0);
  CHECK(status.at("last_checkpoint").is_null());
  CHECK(status.at("output_dir") == output);
  CHECK(status.at("hosts") == json{"localhost"});
  CHECK(status.at("pid") == launch->pid());
  REQUIRE(status.at("ranks").size() == 2);
  CHECK(::kill(status.at("ranks").at(1).at("pid").get<pid_t>(), 0) == 0);

  const std::string id = status.at("job");
  const auto saved = session.run({"save", id});
  CHECK(saved.status == 0);
  CHECK_THAT(saved.out, Catch::Matchers::StartsWith(output + "/checkpoint-"));
  CHECK(checkpoint::verify(saved.out.substr(0, saved.out.size() - 1)).whole());
  const auto text = session.run({"status", id});
  CHECK_THAT(text.out,
             ContainsSubstring("last checkpoint " + saved.out.substr(0, saved.out.size() - 1)));
  CHECK_THAT(session.run({"status"}).out, ContainsSubstring(id));

  const auto stopped = session.run({"stop", output});
  CHECK(stopped.status == 0);
  CHECK_THAT(stopped.out, ContainsSubstring("ended with status 75"));
  CHECK(launch->wait() == 75);
  CHECK_THAT(launch->err(),
             ContainsSubstring("dstrain stop: saving and stopping") && !ContainsSubstring("SIG"));
  CHECK(launch->nothing_left());
  CHECK(checkpoint::list_checkpoints(session.output()).size() == 2);
  CHECK(fs::is_empty(session.sockets()));
}

TEST_CASE("Job: a launcher without rank 0 shows steps and saves", "[e2e][job]") {
  const std::array<Session, 2> sessions;
  const std::string output = sessions[0].output().string();
  const std::string port = std::to_string(test::free_port());
  std::vector<std::unique_ptr<Launch>> launches;
  for (int node = 0; node < 2; ++node) {
    Words words{"--no_ssh",           "--num_nodes",   "2",  "--node_rank",
                std::to_string(node), "--num_gpus",    "2",  "--master_addr",
                "127.0.0.1",          "--master_port", port, "train",
                "--output_dir",       output};
    for (const std::string& word : test::ResumableRun().arguments(1'000'000)) words.push_back(word);
    words.insert(words.end(), {"--per_device_train_batch_size", "3", "--save_steps", "0"});
    Launch::Options options = sessions.at(static_cast<std::size_t>(node)).options();
    options.env.push_back({"DSTRAIN_TOKEN", "shared"});
    launches.push_back(std::make_unique<Launch>(words, options));
  }
  REQUIRE(launches[0]->wait_for_output("step 1/"));
  const auto status = [](const Session& session) {
    return json::parse(session.run({"status", job_of(session), "--json"}).out);
  };
  for (const Session& session : sessions) {
    CHECK(launches[0]->wait_until([&] { return status(session).at("step").is_number(); }));
    const auto first = status(session).at("step").get<std::int64_t>();
    CHECK(launches[0]->wait_until([&] { return status(session).at("step") > first; }));
    CHECK(status(session).at("loss").is_number());
  }
  // Each launcher counts its requests from 1.
  for (const std::size_t asked : {1U, 0U, 1U, 1U}) {
    const Session& session = sessions.at(asked);
    const auto saved = session.run({"save", job_of(session)});
    CAPTURE(asked, saved.err);
    REQUIRE(saved.status == 0);
    const std::string path = saved.out.substr(0, saved.out.size() - 1);
    CHECK_THAT(path, Catch::Matchers::StartsWith(output + "/checkpoint-"));
    CHECK(checkpoint::verify(path).whole());
    CHECK(launches[0]->wait_until([&] { return status(session).at("last_checkpoint") == path; }));
  }
  CHECK(sessions[1].run({"stop", job_of(sessions[1])}).status == 0);
  for (const auto& launch : launches) CHECK(launch->wait() == 75);
}

TEST_CASE("Job: a save requested before the ranks start is done", "[e2e][job]") {
  const Session session;
  const test::TempDir folder;
  const std::string client = (folder.path() / "client").string();
  write_text_file(folder.path() / "hosts", "late slots=2\n");
  write_text_file(
      client, "#!/bin/sh\ncd \"${0%/*}\"; until test -e go; do sleep 0.02; done; eval \"$2\"\n");
  fs::permissions(client, fs::perms::owner_all);
  Words words{"-H",
              (folder.path() / "hosts").string(),
              "--ssh_command",
              client,
              "--master_addr",
              "127.0.0.1",
              "--device",
              "cpu",
              "train",
              "--output_dir",
              session.output().string()};
  for (const std::string& word : test::ResumableRun().arguments(1'000'000)) words.push_back(word);
  words.insert(words.end(), {"--per_device_train_batch_size", "6", "--save_steps", "0"});
  Launch launch(words, session.options());
  // The socket's name is there a moment before anybody listens.
  UniqueFd asker;
  const auto serves = [&] {
    if (!fs::exists(session.sockets()) || fs::is_empty(session.sockets())) return false;
    asker = connect_to(socket_of(session));
    return static_cast<bool>(asker);
  };
  REQUIRE(launch.wait_until(serves));
  REQUIRE(::send(asker.get(), "save\n", 5, 0) == 5);
  // Clients are served in the order in which they come.
  CHECK(json::parse(session.run({"status", job_of(session), "--json"}).out).at("step").is_null());
  write_text_file(folder.path() / "go", "");
  REQUIRE(wait_until_ready(asker.get(), POLLIN, Deadline::after(test::hang_seconds)));
  CHECK(session.run({"stop", job_of(session)}).status == 0);
  CHECK(launch.wait() == 75);
  CHECK(checkpoint::list_checkpoints(session.output()).size() == 2);
}

TEST_CASE("Job: launchers with different options get the first difference", "[e2e][job]") {
  const auto [option, value, told] = GENERATE(table<std::string, std::string, std::string>(
      {{"--seed", "7", "rank 0 has --seed 42, rank 1 has --seed 7: "},
       {"--logging_steps", "3", "rank 1 has --logging_steps 3: "},
       {"--config_overrides", "n_layer=1", "rank 1 has --config_overrides n_layer=1: "},
       {"--per_device_train_batch_size", "3", "rank 1 has --per_device_train_batch_size 3: "}}));
  CAPTURE(option);
  const test::TempDir folder;
  Words changed = test::ResumableRun().arguments(5);
  changed.insert(changed.end(), {option, value});
  check_told(start_by_hand(folder, {test::ResumableRun().arguments(5), changed}), told);
}

TEST_CASE("Job: launchers with different data of the same size are reported", "[e2e][job]") {
  const test::TempDir folder;
  std::string tokens = test::read_bytes(test::golden_folder / "tokens.bin");
  tokens.back() ^= 1;
  test::ResumableRun on_other;
  fs::create_directory(folder.path() / "other");
  on_other.train_file = {(folder.path() / "other/tokens.bin").string()};
  write_text_file(on_other.train_file.front(), tokens);
  check_told(start_by_hand(folder, {test::ResumableRun().arguments(5), on_other.arguments(5)}),
             fmt::format("rank 0 has training data of {} bytes with the digest ", tokens.size()));
}

TEST_CASE("Job: launchers that disagree about the ranks are told whose options differ",
          "[e2e][job]") {
  const test::TempDir folder;
  const std::string hostfile = folder.path() / "hosts";
  write_text_file(hostfile, "a slots=1\nb slots=3\n");
  const std::vector<std::pair<Words, std::string>> rows{
      {{"--num_nodes", "2", "--num_gpus", "2"}, "4 ranks on 2 nodes (--num_nodes 2, --num_gpus 2)"},
      {{"--num_nodes", "4"}, "4 ranks on 4 nodes (--num_nodes 4)"},
      {{"-H", hostfile}, "4 ranks on 2 nodes (hostfile " + hostfile + ")"}};
  const auto& [second, told] = rows.at(GENERATE(0U, 1U, 2U));
  const std::array<Words, 2> given{Words{"--num_nodes", "2", "--num_gpus", "1"}, second};
  const std::string port = std::to_string(test::free_port());
  std::vector<std::unique_ptr<Launch>> launches;
  for (std::size_t node = 0; node < 2; ++node) {
    Words words = given.at(node);
    words.insert(words.end(),
                 {"--no_ssh", "--node_rank", std::to_string(node), "--master_addr", "127.0.0.1",
                  "--master_port", port, "train", "--output_dir", folder.path() / "out"});
    for (const std::string& word : test::ResumableRun().arguments(5)) words.push_back(word);
    words.insert(words.end(), {"--per_device_train_batch_size", "3"});
    Launch::Options options{.env = {{"DSTRAIN_TOKEN", "shared"}},
                            .directory = test::golden_folder.string()};
    launches.push_back(std::make_unique<Launch>(words, options));
  }
  for (const auto& launch : launches) {
    CHECK(launch->wait() == 2);
    CAPTURE(launch->err());
    CHECK_THAT(launch->err(),
               ContainsSubstring("node 1's launcher says " + told +
                                 ", and node 0's launcher says 2 ranks on 2 nodes (--num_nodes 2, "
                                 "--num_gpus 1): give all the same") &&
                   !ContainsSubstring("WORLD_SIZE"));
  }
}

TEST_CASE("Job: a port in use is told as one that all launchers must agree on", "[e2e][job]") {
  const UniqueFd listener = std::move(listen_tcp({"127.0.0.1", 0}).value());
  const std::string port = std::to_string(bound_port(listener.get()));
  const test::Outcome outcome =
      test::run_command({"--no_ssh", "--num_nodes", "2", "--node_rank", "0", "--num_gpus", "1",
                         "--master_addr", "127.0.0.1", "--master_port", port, "true"},
                        {.env = {{"DSTRAIN_TOKEN", "shared"}}, .directory = "/"});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err,
             ContainsSubstring("--master_port " + port +
                               ": the port is in use; pass another to all launchers\n"));
}

TEST_CASE("Job: many concurrent save requests are all answered", "[e2e][job]") {
  const Session session;
  const auto launch = session.train({"--save_steps", "7", "--save_total_limit", "3"});
  std::vector<std::unique_ptr<Launch>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(
        std::make_unique<Launch>(Words{"save", session.output().string()}, session.options()));
  }
  for (const auto& client : clients) {
    CHECK(client->wait() == 0);
    CHECK_THAT(client->out(), ContainsSubstring("/checkpoint-"));
  }
  CHECK(session.run({"stop", session.output().string()}).status == 0);
  for (const auto& found : checkpoint::list_checkpoints(session.output())) {
    CHECK(checkpoint::verify(found.path).whole());
  }
}

TEST_CASE("Job: a checkpoint that cannot be written is told", "[e2e][job]") {
  const Session session;
  const auto launch = session.train();
  // What is no directory cannot hold a checkpoint; root ignores permissions.
  fs::rename(session.output(), session.output().string() + ".away");
  std::ofstream(session.output()) << "in the way";
  const std::string id = job_of(session);
  const auto saved = session.run({"save", id});
  CHECK(saved.status == 1);
  CHECK_THAT(saved.err, ContainsSubstring("could not be saved"));
  const json status = json::parse(session.run({"status", id, "--json"}).out);
  CHECK(status.at("state") == "running");
  launch->signal(SIGKILL);
}

TEST_CASE("Job: any program answers status and stop but not save", "[e2e][job]") {
  const Session session;
  Launch launch({"--num_gpus", "2", "sh", "-c", "echo ready; exec sleep 1000"}, session.options());
  REQUIRE(launch.wait_for_output("ready", 2));
  const json status = json::parse(session.run({"status", job_of(session), "--json"}).out);
  CHECK(status.at("program") == "sh");
  CHECK(status.at("step").is_null());
  const std::string id = status.at("job");
  const auto saved = session.run({"save", id});
  CHECK(saved.status == 1);
  CHECK_THAT(saved.err, ContainsSubstring("runs sh"));
  CHECK_THAT(session.run({"stop", id}).out, ContainsSubstring("status 143"));
  CHECK(launch.wait() == 143);
  const auto gone = session.run({"stop", id});
  CHECK(gone.status == 2);
  CHECK_THAT(gone.err, ContainsSubstring("no job"));
}

TEST_CASE("Job: ranks of a lost host are lost while the others are stopped", "[e2e][job]") {
  const Session session;
  const test::FakeHosts hosts("n0 slots=1\naddressed1 slots=1\n");
  Launch launch(hosts.words({"--grace", "1000", "sh", "-c",
                             "trap '' TERM; echo ready; while :; do sleep 1000; done"}),
                session.options());
  REQUIRE(launch.wait_for_output("ready", 2));
  const std::string id = job_of(session);
  hosts.crash("addressed1");
  json status;
  REQUIRE(launch.wait_until([&] {
    status = json::parse(session.run({"status", id, "--json"}).out);
    return status.at("state") == "stopping";
  }));
  CHECK(status.at("ranks").at(0).at("state") == "running");
  CHECK(status.at("ranks").at(1).at("state") == "lost");
  CHECK(status.at("ranks").at(1).at("status").is_null());
  const std::string pid = status.at("ranks").at(1).at("pid").dump();
  CHECK_THAT(session.run({"status", id}).out,
             ContainsSubstring("rank 1 on addressed1, pid " + pid + ": lost\n"));
}

TEST_CASE("Job: what a killed launcher leaves is swept", "[e2e][job]") {
  const Session session;
  Launch launch({"--", "sh", "-c", "echo ready; exec sleep 1000"}, session.options());
  REQUIRE(launch.wait_for_output("ready"));
  Launch waits({"stop", socket_of(session).stem().string()}, session.options());
  ::kill(launch.agent_pid(), SIGSTOP);  // so that it does not stop
  launch.signal(SIGKILL);
  const int status = waits.wait();
  CHECK((status == 1 || status == 2));  // it asked, or came too late
  CHECK(session.run({"status"}).status == 0);
  CHECK(fs::is_empty(session.sockets()));
}

TEST_CASE("Job: a suspended launcher is reported as suspended and not as missing", "[e2e][job]") {
  const Session session;
  Launch launch({"--", "sh", "-c", "echo ready; exec sleep 1000"}, session.options());
  REQUIRE(launch.wait_for_output("ready"));
  const std::string id = job_of(session);
  const std::string stopped =
      fmt::format("job {}: its launcher (pid {}) is stopped", id, launch.pid());
  launch.signal(SIGSTOP);
  CHECK_THAT(session.run({"status"}).out, ContainsSubstring(stopped));
  const std::string command = GENERATE("status", "save", "stop");
  const bool by_directory = GENERATE(false, true);
  const test::Outcome asked =
      session.run({command, by_directory ? session.sockets().string() : id});
  CHECK(asked.status == 1);
  CHECK_THAT(asked.err, ContainsSubstring(stopped));
  const json list = json::parse(session.run({"status", "--json"}).out);
  CHECK(std::ranges::any_of(
      list, [&](const json& job) { return job.at("job") == id && job.at("state") == "silent"; }));
  launch.signal(SIGCONT);
  CHECK(session.run({"stop", id}).status == 0);
  CHECK(launch.wait() == 143);
}

TEST_CASE("Job: an output directory is one job's at a time", "[e2e][job]") {
  const Session session;
  const auto launch = session.train();
  const test::ResumableRun run{.ranks = 1};
  Words words = run.arguments(10);
  words.insert(words.end(), {"--overwrite_output_dir", "--output_dir", session.output().string()});
  const std::string owner = fmt::format("job {}, process ", job_of(session));
  Words launched{"train"};
  launched.insert(launched.end(), words.begin(), words.end());
  const auto refused = session.run(launched);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring(owner) && ContainsSubstring("writes there") &&
                              !ContainsSubstring("rank 0"));
  // As a program of its own it is looked at by no launcher.
  words.insert(words.begin(), {fs::path(DSTRAIN_PROGRAM).parent_path() / "dstraind", "train"});
  const auto late = session.run(words);
  CHECK(late.status == 2);
  CHECK_THAT(late.err, ContainsSubstring(owner) && ContainsSubstring("writes there"));
  launch->signal(SIGTERM);
  CHECK(launch->wait() == 75);
  CHECK_FALSE(fs::exists(session.output() / "job.lock"));
}

TEST_CASE("Job: between two starts a job is found and keeps its directory", "[e2e][job]") {
  const Session session;
  const test::TempDir folder;
  const fs::path script = folder.path() / "script";
  write_text_file(script, "exit 9\n");
  const test::ResumableRun run{.ranks = 1};
  Words words{"--max_restarts", "100",          "--venv_script",          script.string(),
              "train",          "--output_dir", session.output().string()};
  for (const std::string& word : run.arguments(10)) words.push_back(word);
  Launch launch(words, session.options());
  REQUIRE(launch.wait_for_error("restart 4 in 4 s"));
  const std::string output = session.output().string();
  const json status = json::parse(session.run({"status", output, "--json"}).out);
  CHECK(status.at("state") == "restarting");
  CHECK(status.at("ranks").at(0).at("state") == "starting");
  CHECK_THAT(session.run({"status", output, "--stacks"}).out,
             ContainsSubstring("the job is restarting"));
  Words second{"train", "--output_dir", output};
  for (const std::string& word : run.arguments(10)) second.push_back(word);
  const auto refused = session.run(second);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring(fmt::format("job {}, process ", job_of(session))));
  CHECK(session.run({"stop", output}).status == 0);
  CHECK(launch.wait() == 143);
  CHECK(session.run(second).status == 0);  // what is left of it locks nothing and is no output
}

TEST_CASE("Job: a lock that a killed job has left is no output", "[e2e][job]") {
  const Session session;
  const test::ResumableRun run{.ranks = 1};
  fs::create_directory(session.output());
  write_text_file(session.output() / "job.lock", "job gone, process 1 on host w0\n");
  Words words{"train", "--output_dir", session.output().string()};
  for (const std::string& word : run.arguments(2)) words.push_back(word);
  const auto trained = session.run(words);
  CAPTURE(trained.err);
  CHECK(trained.status == 0);
  CHECK_FALSE(fs::exists(session.output() / "job.lock"));
}

TEST_CASE("Job: a directory that other users can enter is not used", "[e2e][job]") {
  const Session session;
  fs::create_directory(session.sockets());
  ::chmod(session.sockets().c_str(), 0755);
  Launch launch({"--", "sh", "-c", "echo ready; exec sleep 1000"}, session.options());
  REQUIRE(launch.wait_for_output("ready"));
  CHECK(fs::is_empty(session.sockets()));
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 143);
}

TEST_CASE("Job: the report of a failure names the last step", "[e2e][job]") {
  const Session session;
  const auto launch = session.train();
  const json status = json::parse(session.run({"status", job_of(session), "--json"}).out);
  ::kill(status.at("ranks").at(1).at("pid").get<pid_t>(), SIGKILL);
  CHECK(launch->wait() == 137);
  CHECK_THAT(launch->err(),
             ContainsSubstring("rank 1 on localhost") && ContainsSubstring("\n  last step: "));
}

TEST_CASE("Job: strangers at its sockets change nothing", "[e2e][job]") {
  const int connections = test::count_from("DSTRAIN_JUNK", 300);
  const Session session;
  const int port = test::free_port();
  const test::ResumableRun run{.ranks = 2, .stage = 3};
  Words words{"--master_port", std::to_string(port),      "--num_gpus",      "2", "train",
              "--output_dir",  session.output().string(), "--logging_steps", "1"};
  const fs::path config = session.output().string() + ".json";
  std::ofstream(config) << run.config().dump();
  words.insert(words.end(), {"--deepspeed", config.string()});
  for (const std::string& word : run.arguments(1'000'000)) words.push_back(word);
  words.insert(words.end(), {"--save_steps", "0"});
  Launch launch(words, session.options());
  REQUIRE(launch.wait_for_output("step 1/"));
  std::vector<UniqueFd> silent;
  for (int i = 0; i < connections; ++i) {
    const auto junk = random_bytes<200>();
    UniqueFd local = connect_to(socket_of(session));
    if (local) ::send(local.get(), junk.data(), junk.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    Result<UniqueFd> remote = connect_tcp({"127.0.0.1", port}, Deadline::after(5));
    if (remote.ok()) send_all(remote.value().get(), junk, Deadline::after(5));
    if (local && i % 7 == 0) silent.push_back(std::move(local));
    if (remote.ok() && i % 7 == 1) silent.push_back(std::move(remote.value()));
    if (silent.size() > 200) silent.clear();
  }
  launch.signal(SIGTERM);
  CHECK(launch.wait() == 75);
  test::TrainRun disturbed;
  std::ifstream lines(session.output() / "metrics.jsonl");
  for (std::string line; std::getline(lines, line);) disturbed.metrics.push_back(json::parse(line));
  const auto steps = static_cast<int>(disturbed.metrics.size());
  const test::TrainRun alone = run.train(session.output().string() + "2", steps);
  REQUIRE(alone.status == 0);
  CHECK(test::results_of(disturbed) == test::results_of(alone));
}
