#include "launcher/agent_voice.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "launcher/machine.h"

namespace dstrain::launcher {

void AgentVoice::hello(std::string_view version) {
  Hello hello;
  hello.version = version;
  hello.gpus = usable_gpus(this_machine());
  // sshd sets it: client address, client port, server address, server port.
  const char* const connection = std::getenv("SSH_CONNECTION");
  std::istringstream words(connection != nullptr ? connection : "");
  std::string port;
  words >> hello.peer_address >> port >> hello.own_address;
  launcher_.send_preamble();
  launcher_.send(FromAgent::hello, encode_hello(hello));
}

void AgentVoice::note(std::string_view text) {
  WireWriter note;
  note.string(text);
  launcher_.send(FromAgent::note, note.take());
}

void AgentVoice::port(int port) {
  WireWriter answer;
  answer.i32(port);
  launcher_.send(FromAgent::port, answer.take());
}

void AgentVoice::no_port(std::string_view reason) {
  WireWriter answer;
  answer.i32(0);
  answer.string(reason);
  launcher_.send(FromAgent::port, answer.take());
}

void AgentVoice::started(int rank, pid_t pid) {
  WireWriter news;
  news.i32(rank);
  news.i32(pid);
  launcher_.send(FromAgent::started, news.take());
}

void AgentVoice::refused(int rank, std::string_view reason) {
  WireWriter news;
  news.i32(rank);
  news.string(reason);
  launcher_.send(FromAgent::refused, news.take());
}

void AgentVoice::told(const RankMessage& message) {
  launcher_.send(FromAgent::told, encode_rank_message(message));
}

void AgentVoice::output(const Output& output) {
  unacknowledged_bytes_ += output.bytes.size();
  launcher_.send(FromAgent::output, encode_output(output));
}

void AgentVoice::acknowledged(std::size_t bytes) {
  unacknowledged_bytes_ -= std::min(unacknowledged_bytes_, bytes);
}

}  // namespace dstrain::launcher
