#pragma once
#include <cstdint>
#include <filesystem>

namespace dstrain::monitor {

/// What of a file of metrics stays when a run goes on.
struct KeptLines {
  std::int64_t step = 0;        ///< of the last line
  std::int64_t unreadable = 0;  ///< lines that are left out, for which a line says so
};

/// Cuts the lines of later steps off a file of metrics, which is replaced at once or not at all.
/// Takes a bounded amount of memory, whatever others have written there. Throws Error{io, input}.
KeptLines keep_lines_until(const std::filesystem::path& path, std::int64_t last_step);

}  // namespace dstrain::monitor
