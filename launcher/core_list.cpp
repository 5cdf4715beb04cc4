#include "launcher/core_list.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr int core_max = (1 << 16) - 1;

[[noreturn]] void refuse(std::string_view text, const char* why) {
  fail(ErrorCode::usage, "--bind_core_list \"{}\": {}; write cores like 0-3,8", text, why);
}

int parse_core(std::string_view word, std::string_view text) {
  const std::size_t begin = std::min(word.find_first_not_of(' '), word.size());
  word = word.substr(begin, word.find_last_not_of(' ') + 1 - begin);
  int core = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, core);
  if (error != std::errc{} || stop != end || word.front() == '-' || core > core_max) {
    refuse(text, "each part is a number or two with a dash between");
  }
  return core;
}

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const int first = parse_core(part.substr(0, dash), text);
    const int last = dash == part.npos ? first : parse_core(part.substr(dash + 1), text);
    if (last < first) refuse(text, "a range ends before it begins");
    if (!cores.empty() && first <= cores.back()) refuse(text, "cores must ascend");
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (comma == rest.npos) return cores;
    rest.remove_prefix(comma + 1);
  }
}

CoreShare share_of_cores(int count, int local_rank, int local_size) {
  const int each = count / local_size;
  if (each == 0) return {local_rank % count, local_rank % count + 1};
  return {each * local_rank, each * (local_rank + 1)};
}

}  // namespace dstrain::launcher
