#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

/// The state that a rank publishes, as plain data in shared memory (progress_page.h). Times are
/// nanoseconds of CLOCK_MONOTONIC, which does not run while the machine is suspended.
namespace dstrain {

enum class RunPhase : std::uint8_t {
  starting,  ///< reads options and data; nothing is published yet
  meeting,   ///< waits for the other ranks to start
  loading,   ///< allocates memory, reads parameters
  training,
  evaluating,
  saving,         ///< copies the contents of a checkpoint, and writes the whole model
  awaiting_save,  ///< votes until a checkpoint is whole
  exporting,      ///< writes the trained model
  ended,          ///< everything is done; the process is about to end
};

/// The work of the computing thread within a phase. Asynchronous devices publish it where it runs.
enum class Work : std::uint8_t { none, vote, tokens, forward, recompute, backward, norm, update };

/// Written by the computing thread.
struct ComputeState {
  std::uint64_t changes = 0;  ///< number of writes; 0: the rank publishes nothing
  std::int64_t step = 0;      ///< current step, from 1; 0: none yet
  std::int64_t since_ns = 0;
  std::int32_t unit = -1;   ///< of the model; -1: none
  std::int32_t thread = 0;  ///< as gettid()
  RunPhase phase = RunPhase::starting;
  Work work = Work::none;
  std::array<std::uint8_t, 6> unused{};
};

/// Written by the communicating thread: the current operation, or the last one.
struct CollectiveState {
  std::uint64_t sequence = 0;  ///< number of operations that the rank has begun; 0: none
  std::int64_t since_ns = 0;   ///< time of its begin, or end
  std::int64_t numel = 0;
  std::array<char, 16> operation{};  ///< "all_gather", padded with zeros
  std::array<char, 8> dtype{};       ///< "f32"; empty: it moves no elements
  std::int32_t peer =
      -1;  ///< the root of a broadcast, the other end of a send or receive; -1: none
  std::int32_t thread = 0;
  std::uint8_t inside = 0;  ///< 1: it is running
  std::array<std::uint8_t, 7> unused{};
};

/// Written by the background thread that saves.
struct SaveState {
  std::uint64_t changes = 0;  ///< number of writes, including one for each piece of a file
  std::int64_t since_ns = 0;
  std::int32_t thread = 0;
  std::uint8_t busy = 0;  ///< 1: there is a file to write, rename or remove
  std::array<std::uint8_t, 3> unused{};
};

struct RankProgress {
  ComputeState compute;
  CollectiveState collective;
  SaveState save;
};

/// Returns the fixed-size text of a record.
template <std::size_t size>
std::string_view text_of(const std::array<char, size>& text) {
  const std::string_view all(text.data(), size);
  return all.substr(0, all.find('\0'));
}

/// Returns "step 12, backward of unit 4", "step 12, evaluating", "starting".
std::string describe(const ComputeState& state);
/// Returns "all_gather of 12 f32", "broadcast of 3 i64, rank 1", "barrier".
std::string describe(const CollectiveState& state);

}  // namespace dstrain
