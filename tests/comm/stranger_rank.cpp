#include <array>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <netinet/in.h>
#include <sys/socket.h>

#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/socket.h"
#include "runtime/base/worker_env.h"
#include "runtime/comm/gloo/gloo_transport.h"
#include "tests/comm/memory_store.h"

/// Two ranks that connect over gloo, as threads, for gloo_stranger_test: `stranger_rank WORDS`,
/// where strangers come to their ports first and say `random`, nothing (`silent`), or the head of a
/// message whose opcode is the number given. Prints an error; exit status as a rank's.
namespace {

using namespace dstrain;

/// A store before which strangers connect to all that a rank listens at, before any rank knows.
class VisitedStore final : public comm::Store {
 public:
  explicit VisitedStore(std::vector<std::uint8_t> words) : words_(std::move(words)) {}
  void set(const std::string& key, std::string_view value) override {
    if (key.starts_with("gloo/world/") && value.size() % address_bytes == 0) visit(value);
    store_.set(key, value);
  }
  std::string get(const std::string& key, double timeout_seconds) override {
    return store_.get(key, timeout_seconds);
  }
  std::int64_t add(const std::string& key, std::int64_t delta) override {
    return store_.add(key, delta);
  }

 private:
  /// Of one listener, as gloo writes them: a sockaddr_storage and a number.
  static constexpr std::size_t address_bytes = sizeof(sockaddr_storage) + sizeof(ssize_t);

  void visit(std::string_view addresses) {
    for (; !addresses.empty(); addresses.remove_prefix(address_bytes)) {
      sockaddr_in address{};
      std::memcpy(&address, addresses.data(), sizeof(address));
      Result<UniqueFd> socket =
          connect_tcp({"127.0.0.1", ntohs(address.sin_port)}, Deadline::after(60));
      if (!socket.ok()) fail(ErrorCode::internal, "no stranger: {}", socket.error());
      send_all(socket.value().get(), words_, Deadline::after(60));
      const std::lock_guard lock(mutex_);
      strangers_.push_back(std::move(socket.value()));
    }
  }

  std::vector<std::uint8_t> words_;
  test::MemoryStore store_;
  std::mutex mutex_;
  std::vector<UniqueFd> strangers_;
};

/// Length, opcode, slot and offsets: for slot 77, which nobody receives.
std::vector<std::uint8_t> head_of_message(std::uint64_t opcode) {
  const std::array<std::uint64_t, 6> head{56, opcode, 77, 0, 8, 0};
  std::vector<std::uint8_t> bytes(sizeof(head) + 8);
  std::memcpy(bytes.data(), head.data(), sizeof(head));
  return bytes;
}

std::vector<std::uint8_t> words_of_strangers(const std::string& kind) {
  if (kind == "silent") return {};
  if (kind != "random") return head_of_message(std::stoul(kind));
  const auto bytes = random_bytes<200>();
  return {bytes.begin(), bytes.end()};
}

/// What a rank that trains does, and how it ends.
int run_rank(comm::Store& store, int rank) {
  try {
    const auto ranks =
        comm::make_gloo_communicator(store, {.rank = rank, .size = 2, .timeout_seconds = 2});
    Stream stream(Stream::Mode::inline_on_caller);
    ranks->barrier(stream);
    return status::done;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return exit_status(error.code());
  }
}

}  // namespace

int main(int argc, char** argv) {
  log_uncaught_exceptions();
  VisitedStore store(words_of_strangers(argc > 1 ? argv[1] : "silent"));
  std::array<int, 2> ends{};
  {
    const std::jthread other([&] { ends[1] = run_rank(store, 1); });
    ends[0] = run_rank(store, 0);
  }
  return ends[0] != status::done ? ends[0] : ends[1];
}
