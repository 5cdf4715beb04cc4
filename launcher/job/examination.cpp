#include "launcher/job/examination.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <functional>
#include <limits>

#include <poll.h>

#include "launcher/hosts/host_agents.h"
#include "launcher/plan/job_env.h"
#include "launcher/process/children.h"
#include "launcher/process/line_splitter.h"
#include "launcher/process/process.h"
#include "launcher/process/signals.h"
#include "launcher/process/text.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"

namespace dstrain::launcher {
namespace {

using doctor::HostReport;
using doctor::HostSays;
using doctor::Level;
using Says = doctor::HostSays::Kind;

constexpr int clock_exchanges = 3;
constexpr double ports_seconds_max = 10;
constexpr double silence_seconds = 30;
constexpr std::uint32_t output_window_bytes = 1U << 20;
constexpr std::size_t error_bytes_max = 4096;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The agent's own program, whatever its path on that host.
constexpr const char* agents_program = "/proc/self/exe";

HostTask task_of(const ExaminedHost& host, int number) {
  HostTask task{host.name, host.remote, {}};
  JobSpec& spec = task.spec;
  spec.working_directory = "/";
  spec.command = {agents_program, {"dstrain"}, std::nullopt, false};
  spec.command.argv.insert(spec.command.argv.end(), host.words.begin(), host.words.end());
  // A name server that does not answer holds up no more than a part of the checks.
  spec.env = {{"RES_OPTIONS", "timeout:2 attempts:1"}};
  spec.ranks = {{number, 0, {}}};
  spec.slots = {0};
  spec.use_gpus = false;
  spec.oversubscribe = true;
  spec.output_window_bytes = output_window_bytes;
  return task;
}

/// How far one host has come.
struct HostProgress {
  enum class Stage { connecting, timing, looking, looked, opening, open, reaching, done, lost };

  HostAgent& agent;
  HostReport& report;
  bool of_job;
  Stage stage = Stage::connecting;
  LineSplitter lines{};
  std::string errors{};  ///< the last of what was written to its standard error
  std::string check{};   ///< the check that it is running
  double asked_at = 0;   ///< the time, in seconds since 1970
  int times_told = 0;
  std::size_t tried = 0;   ///< peers
  std::size_t peers = 0;   ///< to be tried
  doctor::Peer address{};  ///< where it listens

  void ask(const std::string& message) {
    agent.send(ToAgent::rank_message, encode_rank_message({agent.first_rank(), message}));
  }
  void add(const char* check_name, Level level, std::string what, std::string fix) const {
    report.findings.push_back({check_name, level, std::move(what), std::move(fix)});
  }
  void lose(const char* check_name, std::string what, std::string fix) {
    add(check_name, Level::problem, std::move(what), std::move(fix));
    stage = Stage::lost;
    agent.state = HostAgent::State::ended;
    agent.abandon();
  }
};

using Stage = HostProgress::Stage;

class Examiner {
 public:
  explicit Examiner(const Examination& examination);
  std::vector<HostReport> run();

 private:
  void wait_while(const std::function<bool(const HostProgress&)>& busy, double seconds);
  void poll_once(double deadline);
  void receive(HostProgress& host, std::span<const pollfd> fds);
  void take(HostProgress& host, const Frame& frame);
  void take_hello(HostProgress& host, const Frame& frame);
  void take_output(HostProgress& host, const Frame& frame);
  void take_line(HostProgress& host, std::string_view line);
  void take_ports(HostProgress& host, const HostSays& says);
  void take_time(HostProgress& host, double time);
  void give_up_slow_ones();
  void try_ports();
  [[nodiscard]] std::string address_of(const HostProgress& host) const;
  void report_ports();

  const Examination& examination_;
  UnsuspendedClock clock_;
  std::vector<HostTask> tasks_;
  std::vector<HostReport> reports_;
  HostAgents agents_;
  std::deque<HostProgress> hosts_;
};

Examiner::Examiner(const Examination& examination) : examination_(examination) {
  for (const ExaminedHost& host : examination.hosts) {
    tasks_.push_back(task_of(host, static_cast<int>(tasks_.size())));
    reports_.push_back({.host = host.name});
  }
}

void Examiner::take_hello(HostProgress& host, const Frame& frame) {
  HostAgent& agent = host.agent;
  agent.hello = decode_hello(frame.payload);
  agent.state = HostAgent::State::ready;
  if (agent.hello.protocol != protocol_version || agent.hello.version != examination_.version) {
    const std::string& version = agent.hello.version;
    return host.lose(
        "same_version",
        fmt::format("its dstrain is version {} (protocol {}), this one is {} ({})",
                    version.empty() ? "unknown" : version, agent.hello.protocol,
                    examination_.version, protocol_version),
        "pass --copy_binary to copy this one, or install the same version on every host");
  }
  agent.send(ToAgent::job, encode_job(agent.task().spec));
  agent.state = HostAgent::State::working;
}

void Examiner::take_time(HostProgress& host, double time) {
  const double now = seconds_since_1970();
  const doctor::ClockOffset offset{time - (host.asked_at + now) / 2, (now - host.asked_at) / 2};
  doctor::ClockOffset& best = host.report.clock;
  if (host.times_told++ == 0 || offset.doubt < best.doubt) best = offset;
  if (host.times_told < clock_exchanges) {
    host.asked_at = seconds_since_1970();
    return host.ask("time");
  }
  host.stage = Stage::looking;
  host.ask("look");
}

void Examiner::take_line(HostProgress& host, std::string_view line) {
  HostSays says = doctor::decode_says(line);
  switch (says.kind) {
    case Says::time:
      return take_time(host, says.time);
    case Says::machine:
      host.report.machine = std::move(says.machine);
      return;
    case Says::check:
      host.check = std::move(says.text);
      return;
    case Says::finding:
      host.report.findings.push_back(std::move(says.finding));
      return;
    case Says::looked:
      host.report.looked = true;
      host.stage = Stage::looked;
      return;
    default:
      return take_ports(host, says);
  }
}

/// Takes its report about its own port and those of other hosts.
void Examiner::take_ports(HostProgress& host, const HostSays& says) {
  if (says.kind == Says::tried) {
    host.tried += static_cast<std::size_t>(std::max(says.number, 0));
    if (host.tried >= host.peers) host.stage = Stage::done;
  } else if (says.kind == Says::unreached) {
    const auto peer = std::ranges::find_if(
        hosts_, [&](const HostProgress& one) { return one.report.host == says.peer; });
    const int port = peer == hosts_.end() ? 0 : peer->address.port;
    host.add("ports", Level::problem,
             fmt::format("{} cannot reach {}:{}: {}", host.report.host, says.peer, port, says.text),
             "open all TCP ports between the hosts of a job in the firewall, or open a range and "
             "pass it as --port_range");
  } else {
    host.stage = Stage::open;
    host.address.port = says.number;
    host.address.nonce = says.nonce;
    if (says.number > 0) return;
    host.add("ports", Level::problem, fmt::format("cannot open a port: {}", says.text),
             "check the addresses of its interfaces (ip address)");
  }
}

void Examiner::take_output(HostProgress& host, const Frame& frame) {
  const Output output = decode_output(frame.payload);
  host.agent.owed_acks += output.bytes.size();
  if (output.stream == OutputStream::err) {
    host.errors.append(output.bytes);
    if (host.errors.size() > error_bytes_max) {
      host.errors.erase(0, host.errors.size() - error_bytes_max);
    }
    return;
  }
  host.lines.feed(output.bytes, [&](std::string_view line) { take_line(host, line); });
}

void Examiner::take(HostProgress& host, const Frame& frame) {
  WireReader in(frame.payload);
  switch (static_cast<FromAgent>(frame.type)) {
    case FromAgent::hello:
      return take_hello(host, frame);
    case FromAgent::started:
      host.stage = Stage::timing;
      host.asked_at = seconds_since_1970();
      return host.ask("time");
    case FromAgent::refused:
      in.u32();
      return host.lose("reachable", std::string(in.string()),
                       "check that /proc is mounted there and that processes can be started");
    case FromAgent::output:
      return take_output(host, frame);
    case FromAgent::exited:
      return host.lose("reachable",
                       fmt::format("its dstrain doctor {} during the check \"{}\": {}",
                                   describe_end(decode_exit(frame.payload).wait_status), host.check,
                                   last_line(host.errors)),
                       "run dstrain doctor by hand there");
    default:
      return;
  }
}

void Examiner::receive(HostProgress& host, std::span<const pollfd> fds) {
  if (host.agent.state == HostAgent::State::ended) return;
  const std::string by_hand =
      fmt::format("check that \"ssh {} true\" works by hand", host.report.host);
  try {
    const bool open = host.agent.receive(fds, [&](const Frame& frame) {
      if (host.stage != Stage::lost) take(host, frame);
    });
    if (open || host.stage == Stage::lost) return;
    const std::string reason = host.agent.end_reason();
    host.lose("reachable", reason, by_hand);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::remote) throw;
    host.lose("reachable", error.what(), by_hand);
  }
}

void Examiner::poll_once(double deadline) {
  std::vector<pollfd> fds;
  for (const HostProgress& host : hosts_) host.agent.add_polls(fds);
  constexpr double slice_seconds = 1;
  const double seconds = std::clamp(deadline - clock_.now_seconds(), 0.0, slice_seconds);
  clock_.begin_slice();
  if (poll(fds.data(), fds.size(), static_cast<int>(seconds * 1000) + 1) < 0 && errno != EINTR) {
    fail_errno(errno, "poll");
  }
  clock_.skip_standstill(slice_seconds);
  std::size_t at = 0;
  for (HostProgress& host : hosts_) {
    receive(host, std::span(fds).subspan(at, HostAgent::poll_count));
    at += HostAgent::poll_count;
    host.agent.acknowledge();
    host.agent.flush();
  }
}

void Examiner::wait_while(const std::function<bool(const HostProgress&)>& busy, double seconds) {
  const double deadline = clock_.now_seconds() + seconds;
  for (HostProgress& host : hosts_) host.agent.flush();
  while (std::ranges::any_of(hosts_, busy) && clock_.now_seconds() < deadline) {
    poll_once(deadline);
  }
}

void Examiner::give_up_slow_ones() {
  for (HostProgress& host : hosts_) {
    if (host.stage == Stage::connecting) {
      host.lose(
          "reachable", fmt::format("did not answer within {} s", examination_.seconds),
          fmt::format("check that \"ssh {} true\" works by hand; pass --timeout to wait longer",
                      host.report.host));
    } else if (host.stage < Stage::looked) {
      host.lose(
          "reachable",
          fmt::format("the check \"{}\" did not end within {} s", host.check, examination_.seconds),
          "find out what hangs there, such as a network disk or a name server; pass --timeout to "
          "wait longer");
    }
  }
}

/// The numeric address as the other hosts see it; empty: not known.
std::string Examiner::address_of(const HostProgress& host) const {
  const auto known = [](const std::string& address) {
    return !address.empty() && address.find('%') == address.npos;  // no zone, which is its own
  };
  if (host.agent.task().remote) {
    const std::string& own = host.agent.hello.own_address;
    return known(own) ? own : "";
  }
  for (const HostProgress& other : hosts_) {
    const bool remote = other.agent.task().remote;
    if (remote && known(other.agent.hello.peer_address)) return other.agent.hello.peer_address;
  }
  return "";
}

void Examiner::report_ports() {
  for (HostProgress& host : hosts_) {
    if (host.stage == Stage::reaching) {
      host.add("ports", Level::problem, "it did not report in time which hosts it reaches",
               "rerun dstrain doctor; check that nothing hangs there");
    }
    const bool troubled =
        std::ranges::count(host.report.findings, std::string("ports"), &doctor::Finding::check) > 0;
    if (host.stage != Stage::done || troubled) continue;
    host.add("ports", Level::ok,
             "reaches " + counted(static_cast<std::int64_t>(host.peers), "other host"), "");
  }
}

void Examiner::try_ports() {
  std::vector<HostProgress*> members;
  for (HostProgress& host : hosts_) {
    if (host.of_job && host.stage == Stage::looked) members.push_back(&host);
  }
  if (members.size() < 2) return;
  for (HostProgress* const host : members) {
    host->address = {host->report.host, address_of(*host), 0, ""};
    if (host->address.address.empty()) {
      host->add("ports", Level::note,
                "not tried: the address at which other hosts reach it is not known",
                "use an SSH client that sets SSH_CONNECTION there");
      continue;
    }
    host->stage = Stage::opening;
    host->ask("listen " + host->address.address);
  }
  const double seconds = std::min(ports_seconds_max, examination_.seconds);
  wait_while([](const HostProgress& host) { return host.stage == Stage::opening; }, seconds);
  for (HostProgress* const host : members) {
    if (host->stage != Stage::open) continue;
    std::vector<doctor::Peer> peers;
    for (const HostProgress* const other : members) {
      if (other != host && other->address.port > 0) peers.push_back(other->address);
    }
    host->peers = peers.size();
    host->stage = peers.empty() ? Stage::done : Stage::reaching;
    for (const std::string& message : doctor::encode_reach(peers)) host->ask(message);
  }
  wait_while([](const HostProgress& host) { return host.stage == Stage::reaching; }, seconds);
  report_ports();
}

std::vector<HostReport> Examiner::run() {
  sigset_t mask{};
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  const std::string job = "doctor-" + random_hex(6);
  agents_.start({job, tasks_, examination_.open, silence_seconds, mask});
  std::size_t at = 0;
  for (const auto& agent : agents_) {
    hosts_.push_back({*agent, reports_[at], examination_.hosts[at].of_job});
    ++at;
  }
  wait_while([](const HostProgress& host) { return host.stage < Stage::looked; },
             examination_.seconds);
  give_up_slow_ones();
  try_ports();
  for (HostProgress& host : hosts_) {
    if (host.stage != Stage::lost) host.ask("end");
    host.agent.flush();
  }
  agents_.close();
  return std::move(reports_);
}

}  // namespace

std::vector<HostReport> examine_hosts(const Examination& examination) {
  ignore_broken_pipes();
  become_subreaper();
  std::vector<HostReport> reports = Examiner(examination).run();
  doctor::compare_hosts(reports);
  return reports;
}

}  // namespace dstrain::launcher
