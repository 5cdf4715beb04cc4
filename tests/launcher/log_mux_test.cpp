#include "launcher/job/log_mux.h"

#include <array>
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "launcher/process/pipes.h"
#include "launcher/process/signals.h"
#include "tests/support/catch.h"

using namespace dstrain::launcher;

namespace {

/// A sink whose reader this test is.
struct Stream {
  PipeEnds pipe = make_pipe();
  OutputSink sink{pipe.write.get()};

  std::string read_all() {
    std::string text;
    std::array<char, 1U << 16> buffer{};
    for (;;) {
      sink.flush();
      const ssize_t got = ::read(pipe.read.get(), buffer.data(), buffer.size());
      if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
      if (got <= 0 && sink.pending_bytes() == 0) return text;
    }
  }
  Stream() { ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK); }
};

struct Streams {
  Stream out;
  Stream err;
};

}  // namespace

TEST_CASE("LogMux: output of several ranks has whole lines with their number", "[launcher]") {
  Streams streams;
  LogMux mux(2, streams.out.sink, streams.err.sink);
  mux.output(0, OutputStream::out, "a");
  mux.output(1, OutputStream::out, "b\npart");
  mux.output(0, OutputStream::out, "A\n\n");
  mux.output(1, OutputStream::err, "oops");
  CHECK(streams.out.read_all() == "[rank 1]: b\n[rank 0]: aA\n[rank 0]: \n");
  CHECK(streams.err.read_all().empty());
  mux.finish(1);
  mux.finish(0);
  CHECK(streams.out.read_all() == "[rank 1]: part\n");
  CHECK(streams.err.read_all() == "[rank 1]: oops\n");
}

TEST_CASE("LogMux: output of a single rank is passed on byte for byte", "[launcher]") {
  Streams streams;
  LogMux mux(1, streams.out.sink, streams.err.sink);
  mux.output(0, OutputStream::out, "1%\r2%\r");
  mux.output(0, OutputStream::out, std::string("\0\xff", 2));
  mux.finish(0);
  CHECK(streams.out.read_all() == std::string("1%\r2%\r\0\xff", 8));
}

TEST_CASE("LogMux: with bare prefixes standard output has no numbers", "[launcher]") {
  Streams streams;
  LogMux mux(2, streams.out.sink, streams.err.sink, LogMux::Prefixes::bare);
  mux.output(1, OutputStream::out, "result\n");
  mux.output(1, OutputStream::err, "warning\n");
  CHECK(streams.out.read_all() == "result\n");
  CHECK(streams.err.read_all() == "[rank 1]: warning\n");
  mux.output(1, OutputStream::out, "as it ");
  CHECK(streams.out.read_all() == "as it ");
  mux.output(1, OutputStream::out, "grows\nand on");
  mux.finish(1);
  CHECK(streams.out.read_all() == "grows\nand on");
  CHECK(mux.last_lines(1) ==
        std::vector<std::string>{"result", "warning", "as it grows", "and on"});
}

TEST_CASE("LogMux: messages of the launcher have their own lines", "[launcher]") {
  Streams streams;
  LogMux mux(1, streams.out.sink, streams.err.sink);
  mux.own_lines("first");
  mux.output(0, OutputStream::err, "50%");
  mux.own_lines("second\n");
  mux.own_lines("third");
  CHECK(streams.err.read_all() == "first\n50%\nsecond\nthird\n");
}

TEST_CASE("LogMux: keeps the last lines of a rank", "[launcher]") {
  Streams streams;
  LogMux mux(2, streams.out.sink, streams.err.sink);
  for (int i = 0; i < 15; ++i) {
    const std::string line = std::to_string(i) + "\n";
    mux.output(1, i % 2 == 0 ? OutputStream::out : OutputStream::err, line + "\n\r\n");
  }
  const std::vector<std::string> expected{"5", "6", "7", "8", "9", "10", "11", "12", "13", "14"};
  CHECK(mux.last_lines(1) == expected);
  CHECK(mux.last_lines(0).empty());
  mux.output(0, OutputStream::out, std::string(1000, 'x'));
  mux.finish(0);
  CHECK(mux.last_lines(0) == std::vector<std::string>{std::string(400, 'x') + " ..."});
}

TEST_CASE("OutputSink: a slow reader loses nothing", "[launcher]") {
  Stream stream;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i) + '\n';
  stream.sink.write(text);
  CHECK_FALSE((::fcntl(stream.pipe.write.get(), F_GETFL) & O_NONBLOCK));  // others share it
  stream.sink.flush();
  CHECK(stream.sink.pending_bytes() > 0);
  CHECK((stream.read_all() == text));
}

TEST_CASE("OutputSink: without a reader nothing is kept", "[launcher]") {
  ignore_broken_pipes();
  Stream stream;
  stream.pipe.read.reset();
  stream.sink.write("lost\n");
  stream.sink.flush();
  CHECK(stream.sink.pending_bytes() == 0);
  stream.sink.write("dropped at once\n");
  CHECK(stream.sink.pending_bytes() == 0);
}
