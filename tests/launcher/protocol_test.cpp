#include "launcher/protocol.h"

#include <catch2/catch.hpp>

#include "runtime/base/error.h"

using namespace dstrain;
using namespace dstrain::launcher;

namespace {

JobSpec sample_job() {
  JobSpec job;
  job.working_directory = "/tmp/with blank";
  job.command = {"/bin/echo", {"echo", "", "two\nlines", std::string("\xff\xfe", 2)}, 1};
  job.env = {{"A", "1"}, {"B", ""}, {"C", "x=y\n"}};
  job.ranks = {{0, 0, {{"RANK", "0"}}}, {1, 1, {{"RANK", "1"}}}};
  job.log_files = {"a", "b"};
  return job;
}

}  // namespace

TEST_CASE("Frames: come back whole however the bytes arrive", "[launcher]") {
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

TEST_CASE("Protocol: output and ends come back", "[launcher]") {
  const std::string bytes = encode_output({7, OutputStream::err, std::string_view("a\0b", 3)});
  const Output output = decode_output(bytes);
  CHECK(output.rank == 7);
  CHECK(output.stream == OutputStream::err);
  CHECK(output.bytes == std::string_view("a\0b", 3));
  const Exit exit = decode_exit(encode_exit({3, 9, OomVerdict::likely}));
  CHECK(exit.rank == 3);
  CHECK(exit.wait_status == 9);
  CHECK(exit.oom == OomVerdict::likely);
}
