#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <dstrain/export.h>

namespace dstrain {

/// Which model an engine shall run: its configuration and where its weights come from. Holds no
/// weights: each rank reads its own share of them when the engine is made.
class DSTRAIN_API Model {
 public:
  /// A directory in Hugging Face's layout (config.json, model.safetensors or its shards) or a
  /// checkpoint of dstrain. Throws Error{input} for files that cannot be used.
  static Model from_pretrained(const std::filesystem::path& directory);
  /// Random weights, drawn from the engine's seed. `name`: a preset ("gpt2", "llama-3.2-1b" ...), a
  /// config.json, or a directory with one; `overrides`: changes such as "n_layer=2,n_embd=64".
  /// Throws Error{usage, input}.
  static Model from_config(const std::string& name, const std::string& overrides = "");
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  ~Model();

  [[nodiscard]] std::int64_t vocabulary() const;  ///< token ids are 0 to vocabulary() - 1
  [[nodiscard]] std::int64_t hidden() const;      ///< width of the residual stream

  class DSTRAIN_INTERNAL Impl;
  /// For the library itself.
  [[nodiscard]] Impl& impl() const { return *impl_; }

 private:
  friend class ModelBuilder;
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dstrain
