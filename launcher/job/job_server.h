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

/// The launcher's side of `dstrain status|save|stop`: a Unix socket that only this user reaches.
/// A client sends one line, "status", "stacks", "save" or "stop", and gets one line of JSON, but
/// for status when it is done. Never waits; whatever clients do, no more than clients_max are held,
/// each with a few bytes. Beyond them those that ask for nothing make room, and when all wait for
/// something the next is told so.
class JobServer {
 public:
  static constexpr std::size_t clients_max = 256;
  /// Borrows the status. Serves nothing, and says why in failure(), when there is no socket to be
  /// had.
  explicit JobServer(const JobStatus& status);
  JobServer(const JobServer&) = delete;
  JobServer& operator=(const JobServer&) = delete;
  JobServer(JobServer&&) = delete;
  JobServer& operator=(JobServer&&) = delete;
  /// Closes all connections; the socket's name goes.
  ~JobServer();

  [[nodiscard]] const std::string& failure() const { return failure_; }
  void add_polls(std::vector<pollfd>& fds) const;

  /// What clients want of the job.
  struct Requests {
    bool stop = false;
    std::uint32_t save_request = 0;  ///< to be passed on to the first rank; 0: none
    bool stacks = false;
  };
  /// Takes back what add_polls() added, polled.
  Requests serve(std::span<const pollfd> fds, double now_seconds);
  /// The number of the last request for a checkpoint that somebody waits for; 0: none.
  [[nodiscard]] std::uint32_t newest_save_request() const;
  /// Whether the job was ever asked to stop: then it shall not begin again.
  [[nodiscard]] bool stop_requested() const { return stop_requested_; }
  /// The ranks have ended and others will be started: tells those who wait for a checkpoint.
  void refuse_saves();
  /// Nobody will be told of a checkpoint, and why.
  void refuse_saves(const std::string& reason);
  /// The first rank has answered.
  void answer_save(const SaveAnswer& answer);
  /// The agents have answered; `line` is JSON.
  void answer_stacks(const std::string& line);
  /// The job has ended: tells all who wait.
  void close(int exit_status);

 private:
  /// Waits for: save with a number, stop with `until_end`, stacks.
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
