#include "runtime/session/meeting.h"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace dstrain::session {
namespace {

std::string_view name_of(Call call) {
  static constexpr std::array<std::string_view, 13> names{
      "train_batch",     "forward_backward", "step",
      "evaluate",        "logits",           "save_checkpoint",
      "load_checkpoint", "save_pretrained",  "gathered_parameters",
      "release",         "stop_requested",   "save_requested",
      "barrier"};
  return names.at(static_cast<std::size_t>(call));
}

/// "step of its engine 0"
std::string describe(const Share& share) {
  if (share.engine == Share::no_engine) return std::string(name_of(share.call));
  return fmt::format("{} of its engine {}", name_of(share.call), share.engine);
}

}  // namespace

std::vector<Share> meet(comm::ControlGroup& ranks, const Share& own) {
  std::vector<Share> all;
  try {
    all = ranks.gather(own);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::timeout) throw;
    fail(error.code(), "{}: {}", name_of(own.call), error.what());
  }
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Share& other = all[rank];
    if (other.call == all.front().call && other.engine == all.front().engine) continue;
    fail(ErrorCode::usage, "ranks make different calls: rank 0 {}, rank {} {}",
         describe(all.front()), rank, describe(other));
  }
  return all;
}

}  // namespace dstrain::session
