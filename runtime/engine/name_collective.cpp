#include "runtime/engine/name_collective.h"

namespace dstrain::engine {
namespace {

/// Whether a communicator or control group throws this when its ranks get out of step.
bool is_of_a_group(ErrorCode code) {
  return code == ErrorCode::comm || code == ErrorCode::timeout || code == ErrorCode::aborted;
}

}  // namespace

Error name_collective(const Error& error, const ProgressPage& progress) {
  const auto published = progress.read();
  if (!is_of_a_group(error.code()) || !published || published->collective.inside == 0) return error;
  return {error.code(),
          fmt::format("collective {}: {}", published->collective.sequence, error.what())};
}

}  // namespace dstrain::engine
