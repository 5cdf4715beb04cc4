#include "launcher/agent/agent_sender.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <unistd.h>

#include "launcher/plan/machine.h"
#include "runtime/os/socket.h"
#include "runtime/os/visible_gpus.h"

namespace dstrain::launcher {

void AgentSender::hello(std::string_view version) {
  Hello hello;
  hello.version = version;
  const Machine machine = this_machine();
  hello.gpus = usable_gpus(machine);
  if (hello.gpus > 0 && machine.visible_gpus) {
    const auto shown = visible_gpus(*machine.visible_gpus, machine.gpus);
    if (!shown.ok()) hello.gpu_problem = shown.error();
  }
  if (const auto socket = connected_addresses(STDIN_FILENO)) {
    hello.own_address = socket->own;
    hello.peer_address = socket->peer;
  } else {
    // sshd sets it: client address, client port, server address, server port.
    const char* const connection = std::getenv("SSH_CONNECTION");
    std::istringstream words(connection != nullptr ? connection : "");
    std::string port;
    words >> hello.peer_address >> port >> hello.own_address;
  }
  launcher_.send_preamble();
  launcher_.send(FromAgent::hello, encode_hello(hello));
}

void AgentSender::note(std::string_view text) {
  WireWriter note;
  note.string(text);
  launcher_.send(FromAgent::note, note.take());
}

void AgentSender::port(int port) {
  WireWriter answer;
  answer.i32(port);
  launcher_.send(FromAgent::port, answer.take());
}

void AgentSender::no_port(std::string_view reason) {
  WireWriter answer;
  answer.i32(0);
  answer.string(reason);
  launcher_.send(FromAgent::port, answer.take());
}

void AgentSender::started(int rank, pid_t pid) {
  WireWriter frame;
  frame.i32(rank);
  frame.i32(pid);
  launcher_.send(FromAgent::started, frame.take());
}

void AgentSender::refused(int rank, std::string_view reason) {
  WireWriter frame;
  frame.i32(rank);
  frame.string(reason);
  launcher_.send(FromAgent::refused, frame.take());
}

void AgentSender::stop(int signal) {
  WireWriter frame;
  frame.i32(signal);
  launcher_.send(FromAgent::stop, frame.take());
}

void AgentSender::rank_message(const RankMessage& message) {
  launcher_.send(FromAgent::rank_message, encode_rank_message(message));
}

void AgentSender::output(const Output& output) {
  unacknowledged_bytes_ += output.bytes.size();
  launcher_.send(FromAgent::output, encode_output(output));
}

void AgentSender::acknowledged(std::size_t bytes) {
  unacknowledged_bytes_ -= std::min(unacknowledged_bytes_, bytes);
}

}  // namespace dstrain::launcher
