#include "runtime/engine/model_saver.h"

#include <optional>

#include "runtime/model/hf_export.h"

namespace dstrain::engine {

void save_model(const model::Model& model,
                ParameterStore& store,
                comm::Communicator& communicator,
                const std::filesystem::path& directory,
                Streams streams) {
  std::optional<model::HfExport> output;
  if (communicator.rank() == 0) {
    output.emplace(directory, model.config_json, model.parameters(),
                   model::HfExportOptions{.dtype = model.dtype});
  }
  for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
    const auto& specs = model.units[unit]->spec().parameters;
    const std::span<const TensorView> views =
        store.acquire(static_cast<int>(unit), streams.compute);
    streams.compute.synchronize();
    if (output) {
      for (std::size_t i = 0; i < specs.size(); ++i) output->write(specs[i], views[i]);
    }
    store.release(static_cast<int>(unit), streams.compute);
  }
  if (output) output->finish();
  communicator.barrier(streams.communication);
}

}  // namespace dstrain::engine
