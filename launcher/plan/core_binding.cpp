#include "launcher/plan/core_binding.h"

#include "launcher/process/text.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr int core_max = (1 << 16) - 1;

[[noreturn]] void refuse(std::string_view text, const char* why) {
  fail(ErrorCode::usage, "--bind_core_list \"{}\": {}; write cores like 0-3,8", text, why);
}

}  // namespace

std::vector<int> parse_core_list(std::string_view text) {
  const Result<std::vector<NumberRange>> ranges = parse_number_ranges(text);
  if (!ranges.ok())
    refuse(text, "each part must be a number, or two numbers with a dash between them");
  std::vector<int> cores;
  for (const auto& [first, last] : ranges.value()) {
    if (first < 0 || last > core_max) refuse(text, "there is no such core");
    if (last < first) refuse(text, "a range must not end before it begins");
    if (!cores.empty() && first <= cores.back()) refuse(text, "cores must ascend");
    for (int core = first; core <= last; ++core) cores.push_back(core);
  }
  return cores;
}

CoreShare share_of_cores(int count, int local_rank, int local_size) {
  const int each = count / local_size;
  if (each == 0) return {local_rank % count, local_rank % count + 1};
  return {each * local_rank, each * (local_rank + 1)};
}

}  // namespace dstrain::launcher
