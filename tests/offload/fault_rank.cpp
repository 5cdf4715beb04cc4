// Writes a swap file in the directory given and reads it back, under tests/fault/fault_library.cpp;
// prints how it went.
#include <algorithm>

#include <fmt/core.h>

#include "runtime/base/error.h"
#include "tests/offload/io_support.h"

using namespace dstrain;
using namespace dstrain::offload;

int main(int /*count*/, char** arguments) {
  const Bytes size = 512 * kibibyte;
  SwapFile file(arguments[1], size);
  const auto io = make_file_io({.block_size = 64 * kibibyte, .queue_depth = 1}, IoKind::threads).io;
  const test::AlignedBytes memory(size);
  test::fill(memory.all(), 4);
  for (const char* const attempt : {"first", "second"}) {
    try {
      io->wait(io->write(file, 0, memory.all()));
      const test::AlignedBytes back(size);
      io->wait(io->read(file, 0, back.all()));
      fmt::print("{}: {}\n", attempt, std::ranges::equal(back.all(), memory.all()));
    } catch (const Error& error) {
      fmt::print("{}: {}\n", attempt, error.what());
    }
  }
}
