#include "runtime/session/parameter_access.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/ops/convert.h"

namespace dstrain::session {
namespace {

/// This rank's slices of some or all states, in f32.
class OwnSlices {
 public:
  /// `wanted`: of a parameter's name and a state's index.
  template <class Wanted>
  OwnSlices(engine::ParameterStore& store, int rank, const Wanted& wanted)
      : slices_(store.saved_slices(rank)), states_(store.saved_states()) {
    std::vector<std::vector<std::byte>> stored(slices_.size() * states_.size());
    std::int64_t longest = 0;
    for (const engine::ParameterSlice& slice : slices_) {
      longest = std::max(longest, slice.end - slice.begin);
    }
    // Copies to it may still be under way when the next begins.
    std::vector<std::byte> ignored(static_cast<std::size_t>(longest * size_of(DType::f32)));
    std::int32_t not_finite = 0;
    store.copy_saved([&](engine::SavedValues saved, Shape shape) -> engine::SaveTarget {
      const engine::ParameterSlice& slice = slices_[saved.slice];
      const DType dtype = states_[saved.state].dtype;
      const HostView flag(std::span(&not_finite, 1), {1});
      if (!wanted(slice.parameter, saved.state)) {
        return {HostView(ignored.data(), dtype, shape), flag};
      }
      std::vector<std::byte>& bytes = stored[index(saved.slice, saved.state)];
      bytes.resize(static_cast<std::size_t>((slice.end - slice.begin) * size_of(dtype)));
      return {HostView(bytes.data() + saved.begin * size_of(dtype), dtype, shape), flag};
    });
    values_.resize(stored.size());
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const DType dtype = states_[i % states_.size()].dtype;
      const Shape shape{std::ssize(stored[i]) / size_of(dtype)};
      values_[i].resize(static_cast<std::size_t>(shape.numel()));
      if (values_[i].empty()) continue;
      CpuStream stream(CpuStream::Mode::inline_on_caller);
      ops::convert(HostView(stored[i].data(), dtype, shape), HostView(values_[i], shape), stream);
    }
  }

  [[nodiscard]] const std::vector<engine::ParameterSlice>& slices() const { return slices_; }
  [[nodiscard]] const std::vector<engine::SavedState>& states() const { return states_; }
  [[nodiscard]] std::vector<float>& values(std::size_t slice, std::size_t state) {
    return values_[index(slice, state)];
  }
  [[nodiscard]] const std::vector<float>& values(std::size_t slice, std::size_t state) const {
    return values_[index(slice, state)];
  }

 private:
  [[nodiscard]] std::size_t index(std::size_t slice, std::size_t state) const {
    return slice * states_.size() + state;
  }

  std::vector<engine::ParameterSlice> slices_;
  std::vector<engine::SavedState> states_;
  std::vector<std::vector<float>> values_;
};

/// The state that holds the parameters as the optimizer updates them comes first.
constexpr std::size_t exact_state = 0;

class StateOfSlices final : public model::ParameterSource {
 public:
  StateOfSlices(const OwnSlices& own, std::size_t state) : own_(own), state_(state) {}
  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override {
    const std::vector<engine::ParameterSlice>& slices = own_.slices();
    for (std::size_t i = 0; i < slices.size() && !values.empty(); ++i) {
      const engine::ParameterSlice& slice = slices[i];
      if (slice.parameter != spec.name || begin < slice.begin || begin >= slice.end) continue;
      const auto count = std::min(static_cast<std::size_t>(slice.end - begin), values.size());
      const std::span<const float> held(own_.values(i, state_));
      std::ranges::copy(held.subspan(static_cast<std::size_t>(begin - slice.begin), count),
                        values.begin());
      values = values.subspan(count);
      begin += static_cast<std::int64_t>(count);
    }
    DSTRAIN_CHECK(values.empty(), "{} from element {} on belongs to another rank", spec.name,
                  begin);
  }

 private:
  const OwnSlices& own_;
  std::size_t state_;
};

}  // namespace

WholeParameters gather_parameters(engine::ParameterStore& store,
                                  comm::ControlGroup& control,
                                  const std::vector<model::ParameterSpec>& parameters) {
  WholeParameters whole;
  for (const model::ParameterSpec& parameter : parameters) {
    whole[parameter.name].resize(static_cast<std::size_t>(parameter.shape.numel()));
  }
  const OwnSlices own(store, control.rank(), [&](const std::string& name, std::size_t state) {
    return state == exact_state && whole.contains(name);
  });
  std::string packed;
  for (std::size_t i = 0; i < own.slices().size(); ++i) {
    const std::vector<float>& values = own.values(i, exact_state);
    packed.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  }
  const std::vector<std::string> all = control.gather_texts(packed);
  for (int rank = 0; rank < control.size(); ++rank) {
    const char* from = all[static_cast<std::size_t>(rank)].data();
    for (const engine::ParameterSlice& slice : store.saved_slices(rank)) {
      const auto found = whole.find(slice.parameter);
      if (found == whole.end()) continue;
      const auto bytes = static_cast<std::size_t>(slice.end - slice.begin) * sizeof(float);
      std::memcpy(found->second.data() + slice.begin, from, bytes);
      from += bytes;
    }
  }
  return whole;
}

void replace_parameters(engine::ParameterStore& store,
                        const WholeParameters& values,
                        int rank,
                        StreamView stream) {
  OwnSlices own(store, rank, [](const std::string&, std::size_t) { return true; });
  for (std::size_t i = 0; i < own.slices().size(); ++i) {
    const engine::ParameterSlice& slice = own.slices()[i];
    const auto found = values.find(slice.parameter);
    if (found == values.end()) continue;
    std::copy(found->second.begin() + slice.begin, found->second.begin() + slice.end,
              own.values(i, exact_state).begin());
  }
  std::vector<StateOfSlices> states;
  for (std::size_t state = 0; state < own.states().size(); ++state) {
    if (!own.states()[state].rounded) states.emplace_back(own, state);
  }
  std::vector<const model::ParameterSource*> optimizer;
  for (std::size_t i = 1; i < states.size(); ++i) optimizer.push_back(&states[i]);
  store.load({states.front(), optimizer}, stream);
}

}  // namespace dstrain::session
