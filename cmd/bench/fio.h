#pragma once
#include <optional>

#include "runtime/base/units.h"

namespace dstrain::bench {

enum class Traffic { read, write, mixed };

/// One way to read or write an open file.
struct FileTraffic {
  Traffic traffic = Traffic::read;
  Bytes bytes = 0;
  Bytes block_size = 0;
  int queue_depth = 0;
  int threads = 0;
};

/// Whether the program fio is on PATH and does what follows.
bool have_fio();

/// Seconds that fio takes for the traffic, past the page cache, through io_uring or else libaio;
/// nothing when it fails. `fd` stays open in it.
std::optional<double> time_of_fio(int fd, const FileTraffic& traffic);

}  // namespace dstrain::bench
