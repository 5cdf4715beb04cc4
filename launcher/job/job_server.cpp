#include "launcher/job/job_server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t request_bytes_max = 64;
constexpr int accepted_at_once = 8;

bool may_ask(int socket) {
  const std::optional<uid_t> user = peer_user(socket);
  return user == geteuid() || user == uid_t{0};
}

std::string as_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_line(const std::string& text) {
  return as_line({{"error", text}});
}

/// Its request is read so that the answer is not lost to a reset.
void turn_away(int socket) {
  const std::string line =
      error_line(fmt::format("{} clients are already waiting for this job; try again later",
                             JobServer::clients_max)) +
      "\n";
  (void)!send(socket, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  std::array<char, request_bytes_max> request;
  (void)!recv(socket, request.data(), request.size(), MSG_DONTWAIT);
}

std::string nothing_to_save(const JobStatus& status) {
  const std::string why =
      status.saved_step > 0 ? fmt::format("newer than checkpoint-{}", status.saved_step) : "yet";
  return fmt::format("job {} is restarting: there is nothing to save {}", status.id, why);
}

}  // namespace

JobServer::JobServer(const JobStatus& status) : status_(status) {
  try {
    directory_ = JobDirectory::make();
    listener_ = directory_->listen(status.id);
  } catch (const Error& error) {
    failure_ = error.what();
  }
}

JobServer::~JobServer() {
  if (directory_) directory_->remove(status_.id);
}

void JobServer::add_polls(std::vector<pollfd>& fds) const {
  fds.push_back({listener_.get(), POLLIN, 0});
  for (const Client& client : clients_) {
    const auto events = static_cast<short>(client.output.empty() ? POLLIN : POLLIN | POLLOUT);
    fds.push_back({client.socket.get(), events, 0});
  }
}

/// Drops the oldest client that waits for nothing.
void JobServer::make_room() {
  for (auto client = clients_.begin(); client != clients_.end(); ++client) {
    if (client->waits()) continue;
    clients_.erase(client);
    return;
  }
}

void JobServer::accept_clients() {
  for (int i = 0; i < accepted_at_once; ++i) {
    UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Without a free descriptor the listener would stay ready for ever.
      if (errno == EMFILE || errno == ENFILE) listener_.reset();
      return;
    }
    if (!may_ask(socket.get())) continue;
    if (clients_.size() >= clients_max) make_room();
    if (clients_.size() >= clients_max) {
      turn_away(socket.get());
      continue;
    }
    clients_.emplace_back().socket = std::move(socket);
  }
}

void JobServer::answer(Client& client, std::string line) {
  client.output = std::move(line) + "\n";
  client.save_request = 0;
  client.until_end = false;
  client.stacks = false;
  flush(client);
}

void JobServer::flush(Client& client) {
  while (!client.output.empty()) {
    const ssize_t sent = send(client.socket.get(), client.output.data(), client.output.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) break;
    client.output.erase(0, static_cast<std::size_t>(sent));
  }
  client.done = true;
}

void JobServer::handle_request(Client& client, double now_seconds, Requests& requests) {
  const bool trains = status_.trains();
  if (client.input == "status") {
    answer(client, status_json(status_, now_seconds));
  } else if (client.input == "stacks") {
    client.stacks = requests.stacks = true;
  } else if (client.input == "stop") {
    client.until_end = requests.stop = stop_requested_ = true;
  } else if (client.input == "save" && trains && status_.restarting) {
    answer(client, error_line(nothing_to_save(status_)));
  } else if (client.input == "save" && trains) {
    client.save_request = requests.save_request = ++save_requests_;
  } else if (client.input == "save") {
    answer(client,
           error_line(fmt::format("job {} runs {}, which has taken no step of a dstrain engine yet",
                                  status_.id, status_.program)));
  } else {
    answer(client, error_line("a request is status, stacks, save or stop"));
  }
}

void JobServer::receive(Client& client, double now_seconds, Requests& requests) {
  std::array<char, request_bytes_max> buffer;
  const ssize_t got = recv(client.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  client.done |= got <= 0;
  // Everything after the first line is ignored.
  if (got <= 0 || client.waits() || !client.output.empty()) return;
  client.input.append(buffer.data(), static_cast<std::size_t>(got));
  const std::size_t end = client.input.find('\n');
  client.done |= end == client.input.npos && client.input.size() >= request_bytes_max;
  if (end == client.input.npos) return;
  client.input.resize(end);
  handle_request(client, now_seconds, requests);
}

JobServer::Requests JobServer::serve(std::span<const pollfd> fds, double now_seconds) {
  Requests requests;
  std::size_t at = 1;
  for (Client& client : clients_) {
    const short events = fds[at++].revents;
    if ((events & POLLOUT) != 0) flush(client);
    if ((events & ~POLLOUT) != 0) receive(client, now_seconds, requests);
  }
  clients_.remove_if([](const Client& client) { return client.done; });
  if (fds.front().revents != 0) accept_clients();
  return requests;
}

void JobServer::answer_save(const SaveAnswer& save) {
  const bool saved = !save.checkpoint.empty();
  for (Client& client : clients_) {
    if (client.save_request == 0 || client.save_request > save.request) continue;
    answer(client, saved ? as_line({{"checkpoint", save.checkpoint}})
                         : error_line("the checkpoint could not be saved: " + save.failure));
  }
}

void JobServer::answer_stacks(const std::string& line) {
  for (Client& client : clients_) {
    if (client.stacks) answer(client, line);
  }
}

std::uint32_t JobServer::newest_save_request() const {
  std::uint32_t newest = 0;
  for (const Client& client : clients_) newest = std::max(newest, client.save_request);
  return newest;
}

void JobServer::refuse_saves() {
  refuse_saves(nothing_to_save(status_));
}

void JobServer::refuse_saves(const std::string& reason) {
  for (Client& client : clients_) {
    if (client.save_request != 0) answer(client, error_line(reason));
  }
}

void JobServer::close(int exit_status) {
  for (Client& client : clients_) {
    if (client.until_end) answer(client, as_line({{"status", exit_status}}));
    if (client.stacks) answer(client, error_line("the job ended before its stacks were collected"));
  }
  refuse_saves("the job ended before it could save");
  clients_.clear();
  listener_.reset();
}

}  // namespace dstrain::launcher
