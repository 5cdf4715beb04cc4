#include "launcher/job/job_server.h"

#include <cerrno>

#include <sys/socket.h>

#include "runtime/os/socket.h"
#include "tests/launcher/runtime_directory.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// The server of a training, and its clients.
class Job {
 public:
  /// Takes in all that has come; returns what was asked for.
  JobServer::Requests serve() {
    JobServer::Requests all;
    for (int times = 0; times < 20; ++times) {
      std::vector<pollfd> fds;
      server_.add_polls(fds);
      if (poll(fds.data(), fds.size(), 0) <= 0) break;
      const JobServer::Requests some = server_.serve(fds, 10);
      all.stop |= some.stop;
      all.stacks |= some.stacks;
      if (some.save_request != 0) all.save_request = some.save_request;
    }
    return all;
  }
  JobServer& server() { return server_; }
  JobStatus& status() { return status_; }
  /// How many clients are held.
  std::size_t clients() {
    serve();
    std::vector<pollfd> fds;
    server_.add_polls(fds);
    return fds.size() - 1;
  }
  UniqueFd client(const std::string& says = "") {
    UniqueFd fd = JobDirectory::make().connect("job", Deadline::after(60));
    send(fd.get(), says.data(), says.size(), MSG_NOSIGNAL);
    return fd;
  }

 private:
  test::RuntimeDirectory directory_;
  JobStatus status_{.id = "job", .program = "train", .output_directory = "/out", .ranks = {}};
  JobServer server_{status_};
};

/// What has come; "-" when nothing has, and the connection is open.
std::string answer_of(const UniqueFd& client) {
  std::string text(4096, '\0');
  const ssize_t got = recv(client.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN ? "-" : "";  // reset: what it had said was not read
  return text.substr(0, static_cast<std::size_t>(got));
}

}  // namespace

TEST_CASE("JobServer: a line is answered by a line", "[launcher][job]") {
  Job job;
  REQUIRE(job.server().failure() == "");
  const UniqueFd status = job.client("status\n");
  const UniqueFd slow = job.client("sta");
  const UniqueFd odd = job.client("hello\n");
  const JobServer::Requests requests = job.serve();
  CHECK_FALSE(requests.stop);
  CHECK(requests.save_request == 0);
  CHECK_THAT(answer_of(status), StartsWith(R"({"job":"job",)"));
  CHECK_THAT(answer_of(odd), ContainsSubstring("a request is status, stacks, save or stop"));
  CHECK(answer_of(slow) == "-");
  send(slow.get(), "tus\nstop\n", 9, MSG_NOSIGNAL);
  CHECK_FALSE(job.serve().stop);
  CHECK_THAT(answer_of(slow), StartsWith(R"({"job":"job",)"));
}

TEST_CASE("JobServer: a save is answered by itself or a later one", "[launcher][job]") {
  Job job;
  const UniqueFd first = job.client("save\n");
  CHECK(job.serve().save_request == 1);
  const UniqueFd second = job.client("save\n");
  CHECK(job.serve().save_request == 2);
  CHECK(job.server().newest_save_request() == 2);
  job.server().answer_save({.request = 1, .step = 5, .checkpoint = "/out/5", .failure = ""});
  CHECK(answer_of(first) == "{\"checkpoint\":\"/out/5\"}\n");
  CHECK(answer_of(second) == "-");
  const UniqueFd third = job.client("save\n");
  CHECK(job.serve().save_request == 3);
  job.server().answer_save({.request = 3, .step = 7, .checkpoint = "", .failure = "no space"});
  for (const UniqueFd* const client : {&second, &third}) {
    CHECK_THAT(answer_of(*client), ContainsSubstring("could not be saved: no space"));
  }
}

TEST_CASE("JobServer: stacks go to all clients that wait for them", "[launcher][job]") {
  Job job;
  const UniqueFd first = job.client("stacks\n");
  CHECK(job.serve().stacks);
  const UniqueFd second = job.client("stacks\n");
  CHECK(job.serve().stacks);
  const UniqueFd saves = job.client("save\n");
  CHECK_FALSE(job.serve().stacks);
  job.server().answer_stacks("{}");
  CHECK(answer_of(first) == "{}\n");
  CHECK(answer_of(second) == "{}\n");
  CHECK(answer_of(saves) == "-");
}

TEST_CASE("JobServer: between two launches nothing is saved and a stop is kept",
          "[launcher][job]") {
  Job job;
  const UniqueFd waiting = job.client("save\n");
  CHECK(job.serve().save_request == 1);
  job.status().restarting = true;
  job.status().restarts = 1;
  job.server().refuse_saves();
  CHECK_THAT(answer_of(waiting), ContainsSubstring("restarting: there is nothing to save yet"));
  CHECK(job.server().newest_save_request() == 0);
  job.status().saved_step = 40;
  const UniqueFd late = job.client("save\n");
  CHECK(job.serve().save_request == 0);
  CHECK_THAT(answer_of(late), ContainsSubstring("nothing to save newer than checkpoint-40"));
  const UniqueFd asks = job.client("status\n");
  job.serve();
  CHECK_THAT(answer_of(asks),
             ContainsSubstring(R"("state":"restarting")") && ContainsSubstring(R"("restarts":1)"));
  CHECK_FALSE(job.server().stop_requested());
  const UniqueFd stops = job.client("stop\n");
  CHECK(job.serve().stop);
  CHECK(job.server().stop_requested());
  CHECK(answer_of(stops) == "-");
  job.server().close(75);
  CHECK(answer_of(stops) == "{\"status\":75}\n");
}

TEST_CASE("JobServer: waiting clients are told that the job ended", "[launcher][job]") {
  Job job;
  const UniqueFd stops = job.client("stop\n");
  const UniqueFd saves = job.client("save\n");
  CHECK(job.serve().stop);
  CHECK(answer_of(stops) == "-");
  job.server().close(75);
  CHECK(answer_of(stops) == "{\"status\":75}\n");
  CHECK_THAT(answer_of(saves), ContainsSubstring("the job ended before it could save"));
}

TEST_CASE("JobServer: a request without a line end is dropped", "[launcher][job]") {
  Job job;
  const UniqueFd flood = job.client();
  const std::string bytes(200, 'x');
  for (int i = 0; i < 10; ++i) {
    send(flood.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    job.serve();
  }
  CHECK(job.clients() == 0);
  CHECK(answer_of(flood) != "-");
}

TEST_CASE("JobServer: silent connections make room and waiting clients stay", "[launcher][job]") {
  Job job;
  const UniqueFd waits = job.client("save\n");
  REQUIRE(job.serve().save_request == 1);
  std::vector<UniqueFd> silent;
  for (std::size_t i = 0; i < JobServer::clients_max + 40; ++i) {
    silent.push_back(job.client());
    REQUIRE(job.clients() <= JobServer::clients_max);
  }
  const UniqueFd late = job.client("status\n");
  job.serve();
  CHECK_THAT(answer_of(late), StartsWith(R"({"job":"job",)"));
  CHECK(answer_of(silent.front()) == "");
  CHECK(answer_of(silent.back()) == "-");
  job.server().answer_save({.request = 1, .step = 5, .checkpoint = "/out/5", .failure = ""});
  CHECK_THAT(answer_of(waits), ContainsSubstring("/out/5"));
}

TEST_CASE("JobServer: sixty concurrent save requests are answered", "[launcher][job]") {
  Job job;
  std::vector<UniqueFd> waiters;
  for (int i = 0; i < 60; ++i) {
    waiters.push_back(job.client("save\n"));
    job.serve();
  }
  job.server().answer_save({.request = 60, .step = 5, .checkpoint = "/out/5", .failure = ""});
  for (const UniqueFd& waiter : waiters) {
    REQUIRE(answer_of(waiter) == "{\"checkpoint\":\"/out/5\"}\n");
  }
}

TEST_CASE("JobServer: one waiting client too many gets an error", "[launcher][job]") {
  Job job;
  std::vector<UniqueFd> waiters;
  for (std::size_t i = 0; i <= JobServer::clients_max; ++i) {
    waiters.push_back(job.client("save\n"));
    job.serve();
  }
  CHECK(job.clients() == JobServer::clients_max);
  CHECK(answer_of(waiters.front()) == "-");
  CHECK_THAT(answer_of(waiters.back()),
             ContainsSubstring("256 clients are already waiting for this job"));
}
