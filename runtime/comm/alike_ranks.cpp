#include "runtime/comm/alike_ranks.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/ranges.h>

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

using Lines = std::vector<std::string>;

Lines split(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns the first of `lines` that is not in `others`; empty if there is none.
std::string first_missing(const Lines& lines, const Lines& others) {
  const auto found = std::ranges::find_if(lines, [&](const std::string& line) {
    return std::ranges::find(others, line) == others.end();
  });
  return found == lines.end() ? "" : *found;
}

/// Returns "rank 0 has --seed 1, rank 3 has --seed 2"; empty if both have the same lines.
std::string describe_difference(const Lines& first, const Lines& other, std::size_t rank) {
  const std::string one = first_missing(first, other);
  const std::string two = first_missing(other, first);
  if (one.empty() && two.empty()) return {};
  if (two.empty()) return fmt::format("rank 0 has {}, and rank {} does not", one, rank);
  if (one.empty()) return fmt::format("rank {} has {}, and rank 0 does not", rank, two);
  return fmt::format("rank 0 has {}, rank {} has {}", one, rank, two);
}

}  // namespace

void require_alike_ranks(std::span<const std::string> own, ControlGroup& control) {
  const Lines all = control.gather_texts(fmt::format("{}", fmt::join(own, "\n")));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::string difference = describe_difference(split(all[0]), split(all[rank]), rank);
    if (difference.empty()) continue;
    fail(ErrorCode::config,
         "{}: all ranks of a run need the same options, environment, configuration, model and data",
         difference);
  }
}

}  // namespace dstrain::comm
