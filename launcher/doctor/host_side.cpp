#include "launcher/doctor/host_side.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/doctor/host_messages.h"
#include "launcher/doctor/reach.h"
#include "launcher/doctor/texts.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/available_memory.h"
#include "runtime/os/fd_io.h"
#include "runtime/rank/rank_control.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher::doctor {
namespace {

using Says = HostSays::Kind;

constexpr std::array instruction_sets{"avx2", "avx512f", "avx512_bf16", "amx_bf16"};

void say(const HostSays& says) {
  const std::string line = encode_says(says);
  write_fully(STDOUT_FILENO, std::as_bytes(std::span(line)), "standard output");
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The rank's end of its control socket.
UniqueFd control_socket() {
  const char* const text = std::getenv(env::control_fd);
  const auto number = text != nullptr ? parse_number<int>(text) : std::nullopt;
  if (!number || ::fcntl(*number, F_SETFD, FD_CLOEXEC) != 0) {
    fail(ErrorCode::usage, "doctor --this_host: only dstrain doctor starts this");
  }
  return UniqueFd(*number);
}

/// Waits for the next message; none when the sender is gone.
std::optional<std::string> next_message(int socket) {
  std::string message(control_message_bytes_max, '\0');
  for (;;) {
    const ssize_t got = ::recv(socket, message.data(), message.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    message.resize(static_cast<std::size_t>(got));
    return message;
  }
}

MachineFacts facts_of(const Probe& probe) {
  const Processor processor = processor_of(probe.text("/proc/cpuinfo").value_or(""));
  MachineFacts facts{processor.model, "", probe.usable_cores(), 0};
  for (const char* set : instruction_sets) {
    if (!processor.flags.contains(set)) continue;
    facts.instructions += facts.instructions.empty() ? set : std::string(" ") + set;
  }
  facts.memory = memory_row(probe.text("/proc/meminfo").value_or(""), "MemTotal").value_or(0);
  return facts;
}

void look(const Probe& probe, const Question& question) {
  say({.kind = Says::machine, .machine = facts_of(probe)});
  for (const Check& check : all_checks()) {
    say({.kind = Says::check, .text = std::string(check.name)});
    Findings findings{std::string(check.name)};
    check.look(probe, question, findings);
    for (const Finding& finding : findings.list()) say({.kind = Says::finding, .finding = finding});
  }
  say({.kind = Says::looked});
}

}  // namespace

int answer_for_host(const Probe& probe, const Question& question) {
  const UniqueFd socket = control_socket();
  std::optional<Listener> listener;
  while (const auto message = next_message(socket.get())) {
    const std::string word = message->substr(0, message->find_first_of(" \n"));
    if (word == "end") break;
    if (word == "time") say({.kind = Says::time, .time = seconds_since_1970()});
    if (word == "look") look(probe, question);
    if (word == "listen") {
      listener.emplace(message->substr(word.size() + 1), question.ports);
      say({.kind = Says::listening,
           .text = listener->failure(),
           .number = listener->port(),
           .nonce = listener->nonce()});
    }
    if (word == "reach") {
      const std::vector<Peer> peers = decode_reach(*message);
      for (const Unreached& peer : reach_all(peers)) {
        say({.kind = Says::unreached, .text = peer.reason, .peer = peer.host});
      }
      say({.kind = Says::tried, .number = static_cast<int>(peers.size())});
    }
  }
  return status::done;
}

}  // namespace dstrain::launcher::doctor
