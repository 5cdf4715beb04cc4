#include "runtime/engine/model_saver.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <vector>

#include "runtime/model/hf_export.h"
#include "runtime/ops/copy_finite.h"

namespace dstrain::engine {
namespace {

/// The file of a rank that writes, from the device by way of a piece of host memory. Does nothing
/// after a failure, which it keeps.
class Output {
 public:
  Output(const model::Model& model, const std::filesystem::path& directory) {
    attempt([&] {
      file_.emplace(directory, model.config_json, model.parameters(),
                    model::HfExportOptions{.dtype = model.dtype,
                                           .companions = model.companions,
                                           .name_prefix = model.hf_names.prefix});
    });
  }
  void write(const model::ParameterSpec& spec, TensorView values, StreamView stream) {
    constexpr Bytes piece_bytes = 16 * mebibyte;
    piece_.resize(static_cast<std::size_t>(piece_bytes));
    const std::int64_t most = piece_bytes / size_of(values.dtype());
    for (std::int64_t begin = 0; begin < values.numel(); begin += most) {
      const Shape shape{std::min(most, values.numel() - begin)};
      const HostView piece(piece_.data(), values.dtype(), shape);
      std::int32_t not_finite = 0;
      ops::copy_finite({.source = values.part(begin, shape),
                        .target = piece,
                        .not_finite = HostView(std::span(&not_finite, 1), {1})},
                       stream);
      stream.synchronize();
      attempt([&] {
        if (not_finite != 0) {
          fail(ErrorCode::diverged,
               "the model is not saved: {} holds a value that is not finite; an older checkpoint "
               "may be whole",
               spec.name);
        }
        file_->write(spec, piece);
      });
    }
  }
  std::exception_ptr finish() {
    attempt([&] { file_->finish(); });
    return failure_;
  }

 private:
  template <class Action>
  void attempt(Action&& action) {
    if (failure_) return;
    try {
      action();
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  std::optional<model::HfExport> file_;
  std::vector<std::byte> piece_;
  std::exception_ptr failure_;
};

}  // namespace

std::exception_ptr save_model(const model::Model& model,
                              ParameterStore& store,
                              const std::filesystem::path* directory,
                              StreamView stream) {
  std::optional<Output> output;
  if (directory != nullptr) output.emplace(model, *directory);
  const auto parts = model.parts();
  for (const model::PartId id : parts.ids()) {
    const model::Part& part = parts[id];
    const model::UnitSpec& unit = model.units[static_cast<std::size_t>(part.unit)]->spec();
    const std::span<const TensorView> views = store.acquire(id, stream);
    if (output && part.is_tile()) {
      const auto tile = static_cast<std::size_t>(part.tile);
      output->write(unit.parameters[unit.tiles[tile].parameter], views.front(), stream);
    }
    for (std::size_t i = 0; output && !part.is_tile() && i < unit.parameters.size(); ++i) {
      if (!views[i].empty()) output->write(unit.parameters[i], views[i], stream);
    }
    store.release(id, stream);
  }
  return output ? output->finish() : nullptr;
}

}  // namespace dstrain::engine
