#include "launcher/protocol/preamble.h"

#include <algorithm>

#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t noise_bytes_max = 1U << 20;

}  // namespace

std::string PreambleFilter::pass(std::string_view bytes) {
  if (found_) return std::string(bytes);
  const std::size_t seen = noise_.size();
  noise_ += bytes;
  const std::size_t at = noise_.find(agent_preamble, seen - std::min(seen, agent_preamble.size()));
  if (at == std::string::npos) {
    if (noise_.size() <= noise_bytes_max) return "";
    fail(ErrorCode::remote, "more than {} KiB came before the agent spoke; what prints there?",
         noise_bytes_max >> 10);
  }
  found_ = true;
  std::string rest = noise_.substr(at + agent_preamble.size());
  noise_.resize(at);
  return rest;
}

}  // namespace dstrain::launcher
