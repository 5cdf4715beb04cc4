#include "runtime/os/available_memory.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "runtime/base/number.h"

namespace dstrain {
namespace {

/// Returns the number after `name` in a text of "NAME NUMBER" lines.
std::optional<Bytes> row(std::string_view text, std::string_view name) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first;
    Bytes value = 0;
    if (words >> first >> value && first == name) return value;
  }
  return std::nullopt;
}

/// Returns the number that is the whole text; none for "max".
std::optional<Bytes> number_of(std::optional<std::string> text) {
  if (!text) return std::nullopt;
  text->erase(std::min(text->find_last_not_of(" \n") + 1, text->size()));
  return parse_number<Bytes>(*text);
}

/// Returns the memory that a group's processes use, without what the kernel can drop.
Bytes used_memory(const std::string& directory, bool version_1, KernelText text) {
  const char* const usage = version_1 ? "/memory.usage_in_bytes" : "/memory.current";
  const std::string prefix = version_1 ? "total_" : "";  // includes the groups below
  const std::string stat = text(directory + "/memory.stat").value_or("");
  Bytes cache = 0;
  for (const char* const name : {"inactive_file", "active_file"}) {
    cache += row(stat, prefix + name).value_or(0);
  }
  return std::max<Bytes>(0, number_of(text(directory + usage)).value_or(0) - cache);
}

}  // namespace

std::optional<Bytes> memory_row(std::string_view meminfo, std::string_view name) {
  const auto kibibytes = row(meminfo, std::string(name) + ":");
  if (!kibibytes) return std::nullopt;
  return *kibibytes * kibibyte;
}

std::vector<LimitedGroup> limited_groups(KernelText text) {
  const ControlGroups groups = control_groups("memory", text);
  const char* const file = groups.version_1 ? "/memory.limit_in_bytes" : "/memory.max";
  const auto machine = memory_row(text("/proc/meminfo").value_or(""), "MemTotal");
  std::vector<LimitedGroup> limited;
  for (const std::string& directory : groups.directories) {
    const auto limit = number_of(text(directory + file));
    if (!limit || *limit < 0 || (machine && *limit >= *machine)) continue;
    limited.push_back({directory, *limit, used_memory(directory, groups.version_1, text)});
  }
  return limited;
}

std::optional<AvailableMemory> available_memory(KernelText text) {
  const std::string meminfo = text("/proc/meminfo").value_or("");
  const auto total = memory_row(meminfo, "MemTotal");
  const auto free = memory_row(meminfo, "MemAvailable");
  std::optional<AvailableMemory> least;
  if (total && free) {
    least = {*free, fmt::format("{} of this machine's {} are available", format_bytes(*free),
                                format_bytes(*total))};
  }
  for (const LimitedGroup& group : limited_groups(text)) {
    const Bytes left = std::max<Bytes>(0, group.limit - group.used);
    if (least && least->bytes <= left) continue;
    least = {left, fmt::format("the control group {} leaves {} of {}", group.directory,
                               format_bytes(left), format_bytes(group.limit))};
  }
  return least;
}

std::optional<AvailableMemory> available_memory() {
  return available_memory([](const std::string& path) { return kernel_text(path); });
}

}  // namespace dstrain
