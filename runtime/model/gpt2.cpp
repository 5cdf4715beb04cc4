#include "runtime/model/gpt2.h"

#include "runtime/base/error.h"
#include "runtime/model/gpt2_block.h"
#include "runtime/model/gpt2_embedding.h"
#include "runtime/model/gpt2_head.h"

namespace dstrain::model {

Model make_gpt2(const Gpt2Config& config, const UnitOptions& options) {
  const DType dtype = options.dtype;
  DSTRAIN_CHECK(dtype == DType::f32 || is_half(dtype), "a model of {}", name_of(dtype));
  Gpt2Config sizes = config;
  sizes.source.clear();  // the blocks keep copies
  Model model;
  model.name = "gpt2";
  model.dtype = dtype;
  model.device = options.device;
  model.units.push_back(std::make_unique<Gpt2Embedding>(sizes, dtype));
  for (std::int64_t layer = 0; layer < config.n_layer; ++layer) {
    model.units.push_back(std::make_unique<Gpt2Block>(sizes, layer, options));
  }
  model.units.push_back(std::make_unique<Gpt2Head>(sizes, options));
  model.vocabulary = config.vocab_size;
  model.positions = config.n_positions;
  model.hidden = config.n_embd;
  model.layers = config.n_layer;
  model.config_json = to_json(config, dtype);
  return model;
}

}  // namespace dstrain::model
