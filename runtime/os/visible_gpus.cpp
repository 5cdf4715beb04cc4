#include "runtime/os/visible_gpus.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace dstrain {
namespace {

std::optional<int> number_of(std::string_view entry) {
  int number = 0;
  const char* const end = entry.data() + entry.size();
  const auto [after, error] = std::from_chars(entry.data(), end, number);
  if (error != std::errc{} || after != end || number < 0) return std::nullopt;
  return number;
}

std::vector<std::string> split_entries(std::string_view list) {
  std::vector<std::string> entries;
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, comma);
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    entries.emplace_back(entry);
    if (comma == list.size()) return entries;
    list.remove_prefix(comma + 1);
  }
}

/// Returns why an entry cannot name a GPU; empty: it can.
std::string problem_of(const std::string& entry, int present) {
  if (is_gpu_uuid(entry)) return "";
  const std::optional<int> number = number_of(entry);
  if (!number) {
    return fmt::format(
        "\"{}\" is not a GPU; use numbers, such as 0,1, or the UUIDs of nvidia-smi -L", entry);
  }
  if (present == 0 || *number < present) return "";
  const std::string there = present == 1
                                ? "one GPU is there, 0"
                                : fmt::format("{} GPUs are there, 0 to {}", present, present - 1);
  return fmt::format("there is no GPU {}: {}; CUDA would also hide the GPUs after it", *number,
                     there);
}

}  // namespace

bool hides_all_gpus(std::string_view list) {
  return split_entries(list).front() == "-1" || list.empty();
}

bool is_gpu_uuid(std::string_view entry) {
  return entry.starts_with("GPU-") || entry.starts_with("MIG-");
}

Result<std::vector<std::string>> visible_gpus(std::string_view list, int present) {
  if (hides_all_gpus(list)) return std::vector<std::string>();
  std::vector<std::string> entries = split_entries(list);
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    std::string problem = problem_of(*entry, present);
    if (const auto number = number_of(*entry)) *entry = std::to_string(*number);  // "01" is 1
    if (problem.empty() && std::find(entries.begin(), entry, *entry) != entry) {
      problem = fmt::format(
          "GPU {} is listed twice; list each once (--oversubscribe lets ranks share GPUs)", *entry);
    }
    if (!problem.empty()) return Failure{fmt::format("CUDA_VISIBLE_DEVICES={}: {}", list, problem)};
  }
  return entries;
}

}  // namespace dstrain
