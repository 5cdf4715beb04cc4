#pragma once
#include <cstdint>
#include <filesystem>

namespace dstrain::monitor {

/// What remains of a metrics file when a run resumes.
struct KeptLines {
  std::int64_t step = 0;        ///< of the last line
  std::int64_t unreadable = 0;  ///< lines dropped, which a new line reports
};

/// Cuts the lines of later steps off a metrics file. Replaces the file atomically or not at all.
/// Uses bounded memory, whatever the file contains. Throws Error{io, input}.
KeptLines keep_lines_until(const std::filesystem::path& path, std::int64_t last_step);

}  // namespace dstrain::monitor
