#include "runtime/rank/rank_control.h"

#include <cstdlib>
#include <limits>
#include <random>

#include <sys/socket.h>

#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("RankControl: messages come back as they were", "[base]") {
  for (const double loss : {0.0, 3.25, -1e-300, 1e300, 0.1}) {
    const auto most = std::numeric_limits<std::int64_t>::max();
    const auto back = decode_progress(encode_progress({7, most, loss, 12.5, 3}));
    REQUIRE(back);
    CHECK(back->step == 7);
    CHECK(back->steps == most);
    CHECK(back->loss == loss);
    CHECK(back->tokens_per_second == 12.5);
    CHECK(back->saved_step == 3);
  }
  for (const char* const path : {"/a", "/with blanks  and\nlines/\xff"}) {
    const auto back = decode_save_answer(encode_save_answer({9, 4, path, ""}));
    REQUIRE(back);
    CHECK(back->request == 9);
    CHECK(back->step == 4);
    CHECK(back->checkpoint == path);
  }
  const auto failed = decode_save_answer(encode_save_answer({9, 4, "", "no space left"}));
  REQUIRE(failed);
  CHECK(failed->checkpoint.empty());
  CHECK(failed->failure == "no space left");
  CHECK(decode_save_request(encode_save_request(4'000'000'000)) == 4'000'000'000);
  CHECK(decode_awaited(encode_awaited("ranks 2 3 (host w1)")) == "ranks 2 3 (host w1)");
  CHECK(decode_unreachable(encode_unreachable(17)) == 17);
  CHECK(decode_input_request(encode_input_request(5)) == 5);
  CHECK(decode_interrupt(encode_interrupt(5)) == 5);
  for (const std::string text : {"a\n", "  two  blanks \n\nlines", "\xff"}) {
    const auto back = decode_input(encode_input({.request = 5, .text = text}));
    REQUIRE(back);
    CHECK(back->request == 5);
    CHECK_FALSE(back->ended);
    CHECK(back->text == text);
  }
  const auto end = decode_input(encode_input({.request = 6, .ended = true}));
  REQUIRE(end);
  CHECK(end->request == 6);
  CHECK(end->ended);
}

TEST_CASE("RankControl: other texts are not taken for messages", "[base]") {
  const char* const bad[] = {"",
                             "progress",
                             "progress 1 2",
                             "progress 1 2 x 4 5",
                             "progress  ",
                             "saved 1",
                             "saved 1 ",
                             "saved x /a",
                             "saved -1 2 /",
                             "unreachable",
                             "unreachable -1",
                             "unreachable w1",
                             "save",
                             "save 99999999999",
                             "save 1 2x",
                             "Progress 1",
                             "progress 1 2 3 4 9999999999999999999999"};
  for (const char* const text : bad) {
    CAPTURE(text);
    CHECK(!decode_progress(text));
    CHECK(!decode_save_answer(text));
    CHECK(!decode_awaited(text));
    CHECK(!decode_unreachable(text));
    CHECK(!decode_input_request(text));
    CHECK(!decode_input(text));
    CHECK(!decode_interrupt(text));
    if (std::string_view(text) != "save 1 2x") CHECK(!decode_save_request(text));
  }
  std::mt19937 random(1);
  for (int round = 0; round < 10'000; ++round) {
    std::string text = encode_progress({1, 2, 3.5, 4.5, 0});
    text[random() % text.size()] = static_cast<char>(random());
    text.resize(random() % (text.size() + 1));
    decode_progress(text);  // whatever it says, nothing breaks
    decode_save_answer(text);
  }
}

TEST_CASE("RankControl: sending never blocks and the newest save request wins", "[base]") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()) == 0);
  UniqueFd agent(ends[0]);
  ::setenv(env::control_fd, std::to_string(ends[1]).c_str(), 1);
  RankControl control = RankControl::from_environment();
  CHECK(control.newest_save_request() == 0);
  for (const char* const text : {"save 2", "junk", "save 5", "save 3"}) {
    REQUIRE(::send(agent.get(), text, std::string_view(text).size(), 0) > 0);
  }
  CHECK(control.newest_save_request() == 5);
  while (control.tell(SaveAnswer{1, 2, "/a", ""})) {
  }
  for (int step = 0; step < 1000; ++step) control.tell(Progress{.step = step});
  agent.reset();
  CHECK(control.tell(SaveAnswer{1, 2, "/a", ""}));  // never to be told
  CHECK(control.newest_save_request() == 5);
  ::setenv(env::control_fd, "0", 1);  // no socket of ours
  CHECK(RankControl::from_environment().newest_save_request() == 0);
  ::unsetenv(env::control_fd);
}
