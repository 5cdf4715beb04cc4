#include "launcher/protocol/protocol.h"

#include "launcher/protocol/frame_pipe.h"
#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

JobSpec sample_job() {
  JobSpec job;
  job.working_directory = "/tmp/with blank";
  job.command = {"/bin/echo", {"echo", "", "two\nlines", std::string("\xff\xfe", 2)}, 1, true};
  job.env = {{"A", "1"}, {"B", ""}, {"C", "x=y\n"}};
  job.ranks = {{0, 0, {{"RANK", "0"}}}, {1, 1, {{"RANK", "1"}}}};
  job.log_files = {"a", "b"};
  job.slots = {4, 7};
  job.input = std::string("a\0b\n", 4);
  job.venv_script = "/venv/bin/activate";
  job.reports_progress = true;
  job.use_gpus = false;
  job.tasks_have_gpus = true;
  job.oversubscribe = true;
  job.output_window_bytes = 77;
  return job;
}

}  // namespace

TEST_CASE("Frames: are reassembled however the bytes arrive", "[launcher]") {
  std::string stream;
  append_frame(stream, 1, "");
  append_frame(stream, 2, "hello");
  append_frame(stream, 3, std::string(100'000, 'x'));
  const auto step = GENERATE(1, 2, 3, 7, 1000, 1'000'000);
  FrameReader reader;
  std::vector<Frame> frames;
  for (std::size_t at = 0; at < stream.size(); at += static_cast<std::size_t>(step)) {
    reader.feed(std::string_view(stream).substr(at, static_cast<std::size_t>(step)));
    while (auto frame = reader.next()) frames.push_back(std::move(*frame));
  }
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].payload.empty());
  CHECK(frames[1].type == 2);
  CHECK(frames[1].payload == "hello");
  CHECK(frames[2].payload.size() == 100'000);
  CHECK(reader.empty());
}

TEST_CASE("Frames: impossible lengths are refused", "[launcher]") {
  for (const std::string& header : {std::string(4, '\0'), std::string(4, '\xff')}) {
    FrameReader reader;
    reader.feed(header);
    CHECK_THROWS_AS(reader.next(), Error);
  }
}

TEST_CASE("Protocol: a job arrives byte for byte", "[launcher]") {
  const JobSpec job = sample_job();
  const JobSpec back = decode_job(encode_job(job));
  CHECK(back.working_directory == job.working_directory);
  CHECK(back.command.program == job.command.program);
  CHECK(back.command.argv == job.command.argv);
  CHECK(back.command.local_rank_position == job.command.local_rank_position);
  CHECK(back.env == job.env);
  REQUIRE(back.ranks.size() == 2);
  CHECK(back.ranks[1].rank == 1);
  CHECK(back.ranks[1].env == job.ranks[1].env);
  CHECK(back.log_files == job.log_files);
  CHECK(back.slots == job.slots);
  CHECK(back.input == job.input);
  CHECK(back.venv_script == job.venv_script);
  CHECK(back.command.daemon);
  CHECK(back.reports_progress);
  CHECK_FALSE(back.use_gpus);
  CHECK(back.tasks_have_gpus);
  CHECK(back.oversubscribe);
  CHECK(back.output_window_bytes == 77);
  CHECK(arguments_of(back.command, 3)[1] == "--local_rank=3");
}

TEST_CASE("Protocol: every truncation of a job is refused", "[launcher]") {
  const std::string bytes = encode_job(sample_job());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(decode_job(std::string_view(bytes).substr(0, size)), Error);
  }
  CHECK_THROWS_AS(decode_job(bytes + "x"), Error);
}

TEST_CASE("Protocol: output and exits survive a round trip", "[launcher]") {
  const std::string bytes = encode_output({7, OutputStream::err, std::string_view("a\0b", 3)});
  const Output output = decode_output(bytes);
  CHECK(output.rank == 7);
  CHECK(output.stream == OutputStream::err);
  CHECK(output.bytes == std::string_view("a\0b", 3));
  const Exit exit = decode_exit(encode_exit({3, 9, KillCause::likely_memory}));
  CHECK(exit.rank == 3);
  CHECK(exit.wait_status == 9);
  CHECK(exit.kill_cause == KillCause::likely_memory);
}

TEST_CASE("Protocol: an agent of another protocol is known by its number", "[launcher]") {
  const Hello hello =
      decode_hello(encode_hello({protocol_version, "1.2", "10.0.0.2", "::1", 4, "one twice"}));
  CHECK(hello.version == "1.2");
  CHECK(hello.own_address == "10.0.0.2");
  CHECK(hello.peer_address == "::1");
  CHECK(hello.gpus == 4);
  CHECK(hello.gpu_problem == "one twice");
  WireWriter other;
  other.u32(protocol_version + 1);
  CHECK(decode_hello(other.take() + "whatever it says").protocol == protocol_version + 1);
}

TEST_CASE("Preamble: noise before it is set aside", "[launcher]") {
  const std::string noise = GENERATE(as<std::string>(), "", "Welcome!\n",
                                     "\x1e"
                                     "dstrain \x1e\n");
  const auto step = GENERATE(1, 5, 1000);
  const std::string stream = noise + std::string(agent_preamble) + "frames" + "\x1e";
  PreambleFilter filter;
  std::string frames;
  for (std::size_t at = 0; at < stream.size(); at += static_cast<std::size_t>(step)) {
    frames += filter.pass(std::string_view(stream).substr(at, static_cast<std::size_t>(step)));
  }
  CHECK(filter.found());
  CHECK(frames == "frames\x1e");
  CHECK(filter.noise() == noise);
}

TEST_CASE("Preamble: noise without an end is refused", "[launcher]") {
  PreambleFilter filter;
  const std::string chunk(1 << 16, 'y');
  for (int i = 0; i < 16; ++i) CHECK(filter.pass(chunk).empty());
  CHECK_THROWS_AS(filter.pass(chunk), Error);
}
