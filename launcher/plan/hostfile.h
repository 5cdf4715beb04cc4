#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::launcher {

/// One host and how many slots (ranks) it offers.
struct HostEntry {
  std::string host;
  int slots = 0;
  bool operator==(const HostEntry&) const = default;
};

inline constexpr int slots_max = 1024;
inline constexpr std::size_t hosts_max = 10'000;

/// Reads `NAME slots=N [max_slots=M]` lines, N at most M; '#' starts a comment; skips blank lines
/// and a byte order mark. Order is kept: it gives the ranks. Throws Error{input}
/// "`name`:line:column: ..." at the first mistake.
std::vector<HostEntry> parse_hostfile(std::string_view text, std::string_view name);

/// The same for a file of at most 1 MiB.
std::vector<HostEntry> read_hostfile(const std::filesystem::path& path);

}  // namespace dstrain::launcher
