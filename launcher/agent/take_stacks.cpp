#include "launcher/agent/take_stacks.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "launcher/agent/thread_stop.h"
#include "launcher/process/proc_thread.h"
#include "launcher/protocol/rank_look.h"
#include "runtime/base/number.h"
#include "runtime/base/result.h"
#include "runtime/base/units.h"
#include "runtime/os/plug_in.h"

namespace dstrain::launcher {
namespace {

constexpr PlugIn plug_in{.file = "libdstrain_stacks.so"};
constexpr std::size_t threads_max = 64;  // per rank, those that matter first

struct TracedRank {
  int rank = 0;
  pid_t process = 0;
  std::vector<pid_t> threads;
};

std::optional<TracedRank> parse_rank(std::string_view word) {
  std::vector<int> numbers;
  while (!word.empty()) {
    const std::size_t end = std::min(word.find_first_of(":,"), word.size());
    const auto number = parse_number<int>(word.substr(0, end));
    if (!number) return std::nullopt;
    numbers.push_back(*number);
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  if (numbers.size() < 2) return std::nullopt;
  return TracedRank{numbers[0], numbers[1], {numbers.begin() + 2, numbers.end()}};
}

/// The lines of a thread without the one that names it.
std::vector<std::string> look_into(pid_t process, pid_t thread, ReadFrames* read_frames) {
  std::vector<std::string> lines;
  if (read_frames != nullptr) {
    const ThreadStop stop(thread);
    if (stop.failure().empty()) {
      read_frames(process, thread, &lines);
    } else {
      lines.push_back(stop.failure());
    }
    if (stop.failure().empty() && !lines.empty()) return lines;
  }
  for (std::string& line : kernel_view(process, thread)) lines.push_back(std::move(line));
  return lines;
}

void print(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) fmt::print("    {}\n", line);
}

/// Prints the threads that matter one by one, then the others, grouped by equal stacks.
void print_rank(const TracedRank& rank, ReadFrames* read_frames) {
  fmt::print("{}{}\n", stack_mark, rank.rank);
  for (const pid_t thread : rank.threads) {
    fmt::print("  thread {}, {}:\n", thread_name(rank.process, thread),
               thread_state_words(thread_state(rank.process, thread)));
    print(look_into(rank.process, thread, read_frames));
  }
  std::map<std::vector<std::string>, int> others;
  std::size_t left = threads_max;
  for (const pid_t thread : threads_of(rank.process)) {
    if (std::ranges::find(rank.threads, thread) != rank.threads.end() || left == 0) continue;
    --left;
    ++others[look_into(rank.process, thread, read_frames)];
  }
  for (const auto& [lines, count] : others) {
    fmt::print("  {}:\n", counted(count, "other thread"));
    print(lines);
  }
  std::fflush(stdout);
}

}  // namespace

int take_stacks(std::span<const std::string> ranks) {
  const Result<void*> opened = open_plug_in(plug_in);
  auto* const read_frames = opened.ok() ? reinterpret_cast<ReadFrames*>(plug_in_symbol(
                                              plug_in, opened.value(), read_frames_symbol))
                                        : nullptr;
  for (const std::string& word : ranks) {
    const auto rank = parse_rank(word);
    if (!rank) fail(ErrorCode::usage, "{}: \"{}\" is not a rank", stacks_argument, word);
    print_rank(*rank, read_frames);
    if (opened.ok()) continue;
    fmt::print("  no frames without {}; to build it, install libdw-dev: {}\n", plug_in.file,
               opened.error());
  }
  return 0;
}

}  // namespace dstrain::launcher
