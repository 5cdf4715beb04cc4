#include "runtime/session/library/impl.h"
#include "runtime/session/model_loading.h"

namespace dstrain {
namespace {

std::unique_ptr<Model::Impl> describe(const config::ModelSettings& settings) {
  const std::shared_ptr<const model::ModelConfig> config = session::model_config(settings);
  return std::make_unique<Model::Impl>(Model::Impl{
      .settings = settings,
      .make = [config](const model::UnitOptions& options) { return config->make(options); },
      .vocabulary = config->vocabulary(),
      .hidden = config->hidden()});
}

}  // namespace

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::from_pretrained(const std::filesystem::path& directory) {
  return Model(describe({.directory = directory.string(), .named_by = "Model::from_pretrained"}));
}

Model Model::from_config(const std::string& name, const std::string& overrides) {
  return Model(describe({.config = name, .overrides = overrides}));
}

std::int64_t Model::vocabulary() const {
  return impl_->vocabulary;
}

std::int64_t Model::hidden() const {
  return impl_->hidden;
}

}  // namespace dstrain
