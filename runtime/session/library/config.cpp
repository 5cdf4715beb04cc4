#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/session/library/impl.h"

namespace dstrain {
namespace {

config::DsConfig checked(config::DsConfig config) {
  config.problems().throw_if_any();
  const std::vector<std::string> automatic = config.automatic_paths();
  if (!automatic.empty()) {
    fail(ErrorCode::config,
         "{}: \"auto\" has no options to follow in a program of your own: write "
         "the value of {}",
         config.file(), fmt::join(automatic, ", "));
  }
  return config;
}

}  // namespace

Config::Config(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;
Config::Config(const Config& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Config& Config::operator=(const Config& other) {
  impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}
Config::~Config() = default;

Config Config::from_file(const std::filesystem::path& file) {
  return Config(std::make_unique<Impl>(Impl{checked(config::DsConfig::load(file))}));
}

Config Config::from_json(const std::string& json) {
  return Config(
      std::make_unique<Impl>(Impl{checked(config::DsConfig::parse(json, "the configuration"))}));
}

}  // namespace dstrain
