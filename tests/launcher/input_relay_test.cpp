#include "launcher/job/input_relay.h"

#include <unistd.h>

#include "launcher/process/pipes.h"
#include "runtime/rank/rank_control.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

struct TypedInput {
  PipeEnds pipe = make_pipe();
  InputRelay relay{pipe.read.get()};

  void type(const std::string& text) const {
    REQUIRE(::write(pipe.write.get(), text.data(), text.size()) == std::ssize(text));
  }
};

}  // namespace

TEST_CASE("InputRelay: each request gets the input that has come since the last", "[launcher]") {
  TypedInput input;
  input.type("before\n");
  CHECK(input.relay.fd() == -1);
  CHECK_FALSE(input.relay.read());
  input.relay.asked(1);
  CHECK(input.relay.fd() == input.pipe.read.get());
  CHECK(input.relay.read() == encode_input({.request = 1, .text = "before\n"}));
  CHECK(input.relay.fd() == -1);
  input.type("a");
  input.type("b\n");
  input.relay.asked(2);
  CHECK(input.relay.read() == encode_input({.request = 2, .text = "ab\n"}));
  input.pipe.write.reset();
  input.relay.asked(3);
  CHECK(input.relay.read() == encode_input({.request = 3, .ended = true}));
}

TEST_CASE("InputRelay: long input comes in several pieces that fit a message", "[launcher]") {
  TypedInput input;
  const std::string text(3 * input_bytes_max + 1, 'x');
  input.type(text);
  std::string got;
  for (std::uint32_t request = 1; got.size() < text.size(); ++request) {
    input.relay.asked(request);
    const std::string message = input.relay.read().value();
    CHECK(message.size() < control_message_bytes_max);
    got += decode_input(message)->text;
  }
  CHECK(got == text);
}

TEST_CASE("InputRelay: nothing to read yet is not the end", "[launcher]") {
  TypedInput input;
  make_non_blocking(input.pipe.read.get());
  input.relay.asked(1);
  CHECK_FALSE(input.relay.read());
  CHECK(input.relay.fd() >= 0);
}

TEST_CASE("InputRelay: a rank that cannot read gets the end", "[launcher]") {
  InputRelay relay(-1);
  relay.asked(1);
  CHECK(relay.read() == encode_input({.request = 1, .ended = true}));
}

TEST_CASE("InputRelay: only a busy rank is interrupted and only once", "[launcher]") {
  TypedInput input;
  CHECK_FALSE(input.relay.interrupt());
  input.relay.asked(1);
  CHECK_FALSE(input.relay.interrupt());
  input.type("a\n");
  input.relay.read();
  CHECK(input.relay.interrupt() == encode_interrupt(1));
  CHECK_FALSE(input.relay.interrupt());
  input.relay.asked(2);
  CHECK_FALSE(input.relay.interrupt());
  input.type("b\n");
  input.relay.read();
  CHECK(input.relay.interrupt() == encode_interrupt(2));
}
