#include "runtime/config/problems.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/shell_word.h"

namespace dstrain::config {

Problems::Entry Problems::entry(Position where,
                                std::string_view path,
                                std::string_view message) const {
  constexpr std::size_t message_bytes_max = 4096;
  const std::string subject = path.empty() ? std::string() : fmt::format("{}: ", printable(path));
  const std::string text = subject + printable(message, message_bytes_max);
  const bool of_option = path.starts_with("--");  // typed, so without a position in a file
  if (file_.empty() || of_option) return {where, text};
  return {where, fmt::format("{}:{}:{}: {}", file_, where.line, where.column, text)};
}

void Problems::add(Position where,
                   std::string_view path,
                   std::string_view message,
                   std::string_view command) {
  constexpr std::size_t command_bytes_max = 8192;
  problems_.push_back(entry(where, path, message));
  if (command.empty()) return;
  problems_.back().line += command_below(printable(command, command_bytes_max));
}

void Problems::warn(Position where, std::string_view path, std::string_view message) {
  warnings_.push_back(entry(where, path, message));
}

bool Problems::any_at(Position where) const {
  return std::any_of(problems_.begin(), problems_.end(),
                     [&](const Entry& entry) { return entry.where == where; });
}

std::vector<std::string> Problems::in_order(std::vector<Entry> entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.where < b.where; });
  std::vector<std::string> lines;
  lines.reserve(entries.size());
  for (Entry& entry : entries) lines.push_back(std::move(entry.line));
  return lines;
}

std::vector<std::string> Problems::warnings() const {
  return in_order(warnings_);
}

std::vector<std::string> Problems::lines() const {
  return in_order(problems_);
}

void Problems::raise() const {
  fail(ErrorCode::config, "{}", fmt::join(lines(), "\n"));
}

}  // namespace dstrain::config
