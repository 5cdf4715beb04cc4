#include "cmd/model_loading.h"

#include "runtime/base/error.h"

namespace dstrain::cmd {

model::Gpt2Config model_config(const config::ModelSettings& settings) {
  if (settings.directory.empty() && settings.config.empty()) {
    fail(ErrorCode::usage,
         "no model: give --model_name_or_path DIR, or --config_name gpt2 for random weights");
  }
  model::Gpt2Config sizes =
      model::load_gpt2_config(settings.config.empty() ? settings.directory : settings.config);
  model::apply_overrides(sizes, settings.overrides);
  model::check(sizes);
  return sizes;
}

}  // namespace dstrain::cmd
