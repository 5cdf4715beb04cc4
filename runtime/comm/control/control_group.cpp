#include "runtime/comm/control/control_group.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::comm {
namespace {

class SelfControlGroup final : public ControlGroup {
 public:
  SelfControlGroup() : ControlGroup({}) {}
  std::vector<std::string> exchange(const Call& /*call*/, std::string_view own) override {
    return {std::string(own)};
  }
  void agree(const Call& /*call*/) override {}
  std::unique_ptr<ControlGroup> split(Communicator::Split /*split*/) override {
    return make_self_control_group();
  }
  void spread(const GroupFailure& /*failure*/) noexcept override {}  // there is no other rank
  std::optional<GroupFailure> failure() override { return std::nullopt; }
};

}  // namespace

std::string ControlGroup::broadcast(std::string_view own, int root) {
  DSTRAIN_CHECK(root >= 0 && root < size_, "rank {} of {}", root, size_);
  std::vector<std::string> texts = exchange({Operation::broadcast, DType::u8, root, 0},
                                            rank_ == root ? own : std::string_view{});
  return std::move(texts[static_cast<std::size_t>(root)]);
}

void ControlGroup::abort() noexcept {
  spread({ErrorCode::aborted, "aborted by rank " + std::to_string(rank_)});
}

bool ControlGroup::any(bool own) {
  const std::vector<char> all = gather(static_cast<char>(own ? 1 : 0));
  return std::ranges::find(all, 1) != all.end();
}

std::unique_ptr<ControlGroup> make_self_control_group() {
  return std::make_unique<SelfControlGroup>();
}

}  // namespace dstrain::comm
