#include "runtime/engine/model_saver.h"

#include <exception>
#include <optional>

#include "runtime/model/hf_export.h"

namespace dstrain::engine {
namespace {

/// The file of a rank that writes. Does nothing after a failure, which it keeps.
class Output {
 public:
  Output(const model::Model& model, const std::filesystem::path& directory) {
    attempt([&] {
      file_.emplace(directory, model.config_json, model.parameters(),
                    model::HfExportOptions{.dtype = model.dtype});
    });
  }
  void write(const model::ParameterSpec& spec, TensorView values) {
    attempt([&] { file_->write(spec, values); });
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
  std::exception_ptr failure_;
};

}  // namespace

std::exception_ptr save_model(const model::Model& model,
                              ParameterStore& store,
                              const std::filesystem::path* directory,
                              StreamView stream) {
  std::optional<Output> output;
  if (directory != nullptr) output.emplace(model, *directory);
  for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
    const auto& specs = model.units[unit]->spec().parameters;
    const std::span<const TensorView> views = store.acquire(static_cast<int>(unit), stream);
    stream.synchronize();
    for (std::size_t i = 0; output && i < specs.size(); ++i) output->write(specs[i], views[i]);
    store.release(static_cast<int>(unit), stream);
  }
  return output ? output->finish() : nullptr;
}

}  // namespace dstrain::engine
