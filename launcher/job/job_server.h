#pragma once
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <poll.h>

#include "launcher/job/job_directory.h"
#include "launcher/job/job_status.h"

namespace dstrain::launcher {

/// The launcher's side of `dstrain status|save|stop`: a Unix socket that only this user reaches. A
/// client sends one line, "status", "stacks", "save" or "stop", and gets one line of JSON, but for
/// status when it is done. Never blocks. Holds at most clients_max clients, each with a few bytes.
/// When it is full, a new client replaces the oldest that has asked for nothing; if all wait for an
/// answer, the new one is refused.
class JobServer {
 public:
  static constexpr std::size_t clients_max = 256;
  /// Borrows the status. If no socket can be made, serves nothing, and failure() says why.
  explicit JobServer(const JobStatus& status);
  JobServer(const JobServer&) = delete;
  JobServer& operator=(const JobServer&) = delete;
  JobServer(JobServer&&) = delete;
  JobServer& operator=(JobServer&&) = delete;
  /// Closes all connections and removes the socket's name.
  ~JobServer();

  [[nodiscard]] const std::string& failure() const { return failure_; }
  void add_polls(std::vector<pollfd>& fds) const;

  /// What clients ask for.
  struct Requests {
    bool stop = false;
    std::uint32_t save_request = 0;  ///< to be passed on to the first rank; 0: none
    bool stacks = false;
  };
  /// Takes the polled descriptors that add_polls() added.
  Requests serve(std::span<const pollfd> fds, double now_seconds);
  /// The number of the last request for a checkpoint that a client waits for; 0: none.
  [[nodiscard]] std::uint32_t newest_save_request() const;
  /// Whether the job was ever asked to stop: then it must not restart.
  [[nodiscard]] bool stop_requested() const { return stop_requested_; }
  /// The ranks have ended and will be restarted: answers the clients that wait for a checkpoint.
  void refuse_saves();
  /// Answers the clients that wait for a checkpoint with `reason`.
  void refuse_saves(const std::string& reason);
  /// The first rank has answered.
  void answer_save(const SaveAnswer& answer);
  /// The agents have answered; `line` is JSON.
  void answer_stacks(const std::string& line);
  /// The job has ended: answers all clients that wait.
  void close(int exit_status);

 private:
  /// Waits for a save if `save_request` is set, for a stop if `until_end` is, for stacks if
  /// `stacks` is.
  struct Client {
    UniqueFd socket;
    std::string input;
    std::string output;
    std::uint32_t save_request = 0;
    bool until_end = false;
    bool stacks = false;
    bool done = false;
    [[nodiscard]] bool waits() const { return save_request != 0 || until_end || stacks; }
  };
  void accept_clients();
  void make_room();
  void receive(Client& client, double now_seconds, Requests& requests);
  void handle_request(Client& client, double now_seconds, Requests& requests);
  static void answer(Client& client, std::string line);
  static void flush(Client& client);

  const JobStatus& status_;
  std::string failure_;
  std::optional<JobDirectory> directory_;
  UniqueFd listener_;
  std::list<Client> clients_;
  std::uint32_t save_requests_ = 0;
  bool stop_requested_ = false;
};

}  // namespace dstrain::launcher
