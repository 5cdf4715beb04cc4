#include <string_view>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/session/library/impl.h"
#include "runtime/session/model_loading.h"

namespace dstrain {
namespace {

/// The directory was not given as an option here.
std::shared_ptr<const model::ModelConfig> read_config(const config::ModelSettings& settings) {
  constexpr std::string_view option = "--model_name_or_path ";
  std::error_code ignored;
  if (!settings.directory.empty() && !std::filesystem::is_directory(settings.directory, ignored)) {
    fail(ErrorCode::input, "{}: no such directory", settings.directory);
  }
  try {
    return session::model_config(settings);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    if (!message.starts_with(option)) throw;
    throw Error(error.code(), std::string(message.substr(option.size())));
  }
}

std::unique_ptr<Model::Impl> describe(const config::ModelSettings& settings) {
  const std::shared_ptr<const model::ModelConfig> config = read_config(settings);
  return std::make_unique<Model::Impl>(
      settings, [config](const model::UnitOptions& options) { return config->make(options); },
      config->vocabulary(), config->hidden());
}

}  // namespace

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Model Model::from_pretrained(const std::filesystem::path& directory) {
  return Model(describe({.directory = directory.string()}));
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
