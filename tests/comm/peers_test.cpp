// What a rank that fails still says to the others.
#include "runtime/comm/message/peers.h"

#include <array>
#include <cstring>
#include <map>

#include <catch2/catch.hpp>

#include "runtime/base/error.h"

using namespace dstrain;
using Catch::Matchers::Contains;
using comm::PendingMessage;
using State = PendingMessage::State;

namespace {

/// The notices that reached each peer: kind and subject. (0: a call, 1: has left, 2: is gone.)
using Delivered = std::map<int, std::vector<std::array<std::int32_t, 2>>>;

/// Rank 0 of 3 over a slow network: what is sent arrives when it is waited for a second time, and
/// is lost when it is given up before. Rank 1 is gone; rank 2 says nothing.
class SlowTransport final : public comm::Transport {
 public:
  explicit SlowTransport(Delivered& delivered) : delivered_(delivered) {}
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 3; }
  comm::Message send(int peer, Channel channel, const void* from, Bytes /*bytes*/) override {
    return std::make_unique<Sent>(*this, peer, channel, from);
  }
  comm::Message receive(int peer, Channel, void* /*to*/, Bytes /*bytes*/) override {
    return std::make_unique<Awaited>(peer);
  }
  void raise_alarm() noexcept override {}
  [[nodiscard]] int alarm_raised_by() const override { return -1; }
  [[nodiscard]] std::string reason() const override { return {}; }
  [[nodiscard]] std::int64_t next_group() const override { return 0; }
  std::unique_ptr<Transport> split(const Subgroup& /*subgroup*/) override { return nullptr; }

 private:
  class Sent final : public PendingMessage {
   public:
    Sent(SlowTransport& network, int peer, Channel channel, const void* from)
        : network_(network), peer_(peer), channel_(channel), from_(from) {}
    State wait(Deadline /*deadline*/) override {
      if (peer_ == 1) return State::lost;
      if (looks_++ == 0) return State::pending;
      if (looks_ == 2 && channel_ == Channel::control) {
        std::array<std::int32_t, 2> notice{};
        std::memcpy(notice.data(), from_, sizeof(notice));
        network_.delivered_[peer_].push_back(notice);
      }
      return State::done;
    }
    bool is_lost() override { return peer_ == 1; }

   private:
    SlowTransport& network_;
    int peer_;
    Channel channel_;
    const void* from_;
    int looks_ = 0;
  };
  class Awaited final : public PendingMessage {
   public:
    explicit Awaited(int peer) : peer_(peer) {}
    State wait(Deadline /*deadline*/) override { return peer_ == 1 ? State::lost : State::pending; }
    bool is_lost() override { return peer_ == 1; }

   private:
    int peer_;
  };

  Delivered& delivered_;
};

}  // namespace

TEST_CASE("Peers: the end of a rank has been told when its finder fails", "[comm]") {
  Delivered delivered;
  {
    comm::Peers peers(std::make_unique<SlowTransport>(delivered), 600);
    CHECK_THROWS_WITH(peers.agree({comm::Operation::barrier, DType::u8, 0, 0}),
                      Contains("rank 1 is gone"));
  }
  REQUIRE_FALSE(delivered[2].empty());
  CHECK(delivered[2].back() == std::array<std::int32_t, 2>{2, 1});
}
