#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/engine/staged_shard.h"
#include "runtime/model/parameter_source.h"
#include "runtime/ops/convert.h"

namespace dstrain::test {

/// One state of what a rank has copied to save it, to be loaded by the same rank.
class StagedSource final : public model::ParameterSource {
 public:
  /// `staged` holds `slices` and must outlive it.
  StagedSource(const engine::StagedShard& staged,
               std::span<const engine::ParameterSlice> slices,
               std::string state)
      : tensors_(staged.tensors("optim_states")), state_(std::move(state)) {
    std::map<std::string, std::int64_t> used;
    for (const engine::ParameterSlice& slice : slices) {
      std::int64_t& offset = used[slice.parameter];
      places_.push_back({slice, offset});
      offset += slice.end - slice.begin;
    }
  }

  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override {
    const std::int64_t end = begin + std::ssize(values);
    for (const auto& [slice, offset] : places_) {
      if (slice.parameter != spec.name || begin < slice.begin || end > slice.end) continue;
      for (const checkpoint::ShardTensor& tensor : tensors_) {
        if (tensor.name != state_ + "." + spec.name) continue;
        const HostView saved =
            tensor.values.part(offset + begin - slice.begin, {std::ssize(values)});
        CpuStream stream(CpuStream::Mode::inline_on_caller);
        ops::convert(saved, HostView(values, saved.shape()), stream);
        return;
      }
    }
    fail(ErrorCode::internal, "{} from {} on is not this rank's", spec.name, begin);
  }

 private:
  struct Place {
    engine::ParameterSlice slice;
    std::int64_t offset = 0;  ///< of its first element in the tensor
  };
  std::vector<checkpoint::ShardTensor> tensors_;
  std::string state_;
  std::vector<Place> places_;
};

}  // namespace dstrain::test
