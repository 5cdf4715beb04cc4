#include "runtime/comm/control/hierarchical_control_group.h"

#include "runtime/base/error.h"
#include "runtime/comm/packed_texts.h"

namespace dstrain::comm {
namespace {

/// What the first rank of a node shows to the others begins with it; else with an ErrorCode.
constexpr char well = '\xff';

int size_of(const NodeMap& map) {
  std::size_t size = 0;
  for (const std::vector<int>& ranks : map.nodes) size += ranks.size();
  return static_cast<int>(size);
}

}  // namespace

HierarchicalControlGroup::HierarchicalControlGroup(const NodeMap& map, int rank, Parts parts)
    : ControlGroup({rank, size_of(map)}),
      parts_(std::move(parts)),
      ranks_(map.nodes[static_cast<std::size_t>(map.node_of(rank))]) {}

std::vector<std::string> HierarchicalControlGroup::exchange(const Call& call,
                                                            std::string_view own) {
  try {
    const std::vector<std::string> node = parts_.within->exchange(call, own);
    const std::string outcome =
        parts_.within->broadcast(parts_.between ? exchange_between(call, node) : "", 0);
    const std::string_view shown = std::string_view(outcome).substr(1);
    if (outcome.front() == well) return unpack_texts(shown, size());
    throw Error(static_cast<ErrorCode>(outcome.front()), std::string(shown));
  } catch (const Error& error) {
    if (parts_.between) parts_.between->spread(error.code(), error.what());
    throw;
  }
}

/// The other ranks of the node hear of a failure as they would of the values.
std::string HierarchicalControlGroup::exchange_between(const Call& call,
                                                       const std::vector<std::string>& node) {
  std::string packed;
  for (std::size_t i = 0; i < node.size(); ++i) pack_text(packed, ranks_[i], node[i]);
  try {
    std::string outcome(1, well);
    for (const std::string& text : parts_.between->exchange(call, packed)) outcome += text;
    return outcome;
  } catch (const Error& error) {
    return static_cast<char>(error.code()) + std::string(error.what());
  }
}

void HierarchicalControlGroup::abort() noexcept {
  parts_.within->abort();
  if (parts_.between) parts_.between->abort();
}

}  // namespace dstrain::comm
