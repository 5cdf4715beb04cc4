#include "launcher/hosts/ssh/ssh_link.h"

#include <cerrno>
#include <mutex>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "launcher/hosts/ssh/channel_pump.h"
#include "launcher/hosts/ssh/connection.h"
#include "launcher/hosts/ssh/copy_programs.h"
#include "launcher/process/pipes.h"
#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {
namespace {

constexpr int join_milliseconds = 2000;  // a thread that is asked to stop takes far less

/// State that the link and its thread share; the last one frees it.
struct Shared {
  SshTarget target;
  UniqueFd stop{eventfd(0, EFD_CLOEXEC)};
  UniqueFd done{eventfd(0, EFD_CLOEXEC)};
  UniqueFd thread_end;
  std::mutex mutex;
  std::string reason;
};

std::string serve(Shared& shared) {
  const SshTarget& target = shared.target;
  const auto timeout = [&] {
    return ConnectTimeout{shared.stop.get(), target.connect_timeout_seconds};
  };
  try {
    const SshConnection connection = connect_ssh(target, timeout());
    std::string command = target.remote_command;
    if (target.programs) {
      const std::string path = copy_programs(connection, *target.programs, timeout());
      command = fmt::format("exec {} agent", shell_quote(path));
    }
    ssh_channel channel = open_channel(connection, timeout());
    ChannelPump pump(connection.route.session.get(), channel, shared.thread_end.get());
    start_command(connection, channel, command, timeout());
    pump.run(shared.stop.get());
    return pump.end_reason();
  } catch (const std::exception& error) {
    return error.what();
  }
}

class SshLink final : public AgentLink {
 public:
  explicit SshLink(const SshTarget& target) : shared_(std::make_shared<Shared>()) {
    SocketPair pair = make_socket_pair(SOCK_STREAM);
    own_end_ = std::move(pair.ours);
    shared_->thread_end = std::move(pair.theirs);
    shared_->target = target;
    if (!shared_->stop || !shared_->done) fail_errno(errno, "make an eventfd");
    start_thread([shared = shared_] {
      std::string reason = serve(*shared);
      {
        const std::scoped_lock lock(shared->mutex);
        shared->reason = std::move(reason);
      }
      shutdown(shared->thread_end.get(), SHUT_RDWR);
      eventfd_write(shared->done.get(), 1);
    });
  }
  SshLink(const SshLink&) = delete;
  SshLink& operator=(const SshLink&) = delete;
  ~SshLink() override {
    SshLink::abandon();
    pollfd done{shared_->done.get(), POLLIN, 0};
    while (poll(&done, 1, join_milliseconds) < 0 && errno == EINTR) {
    }
  }

  [[nodiscard]] int read_fd() const override { return own_end_.get(); }
  [[nodiscard]] int write_fd() const override { return own_end_.get(); }
  std::string end_reason() override {
    const std::scoped_lock lock(shared_->mutex);
    return shared_->reason;
  }
  void abandon() override { eventfd_write(shared_->stop.get(), 1); }

 private:
  std::shared_ptr<Shared> shared_;
  UniqueFd own_end_;
};

}  // namespace

}  // namespace dstrain::launcher

extern "C" __attribute__((visibility("default"))) dstrain::launcher::AgentLink*
dstrain_make_ssh_link_1(const dstrain::launcher::SshTarget* target) {
  return std::make_unique<dstrain::launcher::SshLink>(*target).release();
}
