#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include <dstrain/export.h>

namespace dstrain {

/// A DeepSpeed configuration: batch sizes, precision, optimizer, scheduler, clipping, ZeRO stage
/// and offload, with DeepSpeed's defaults. Without a `scheduler` the rate is constant.
class DSTRAIN_API Config {
 public:
  /// Reads and checks a ds_config.json as the `train` command does. Throws Error{config} with every
  /// problem, one line each: unknown keys with the nearest known one, wrong values, what is not
  /// implemented. "auto" is a problem too, because there are no options that it could follow.
  static Config from_file(const std::filesystem::path& file);
  /// The same from the JSON itself.
  static Config from_json(const std::string& json);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  Config(const Config&);
  Config& operator=(const Config&);
  ~Config();

  class DSTRAIN_INTERNAL Impl;
  /// For the library itself.
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit Config(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dstrain
