#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/model/model.h"

namespace dstrain::model {

struct ModelFamily;
class ModelConfig;

/// Returns a model without units, with all members set that families have in common. Throws
/// Error{config} for heads that are too large for the device.
Model describe_model(const ModelConfig& config, const UnitOptions& options);

/// A size, rate or kind that makes two configurations different functions of their parameters.
struct ConfigDifference {
  std::string_view key;
  std::string before;
  std::string after;
};

/// Whether a model's files hold a tensor of that name.
using StoredTensor = std::function<bool(std::string_view)>;

/// The configuration of a model, from its config.json. Each family has its own class
/// (gpt2_config.h, llama_config.h), with a table of the keys of its members (config_fields.h).
class ModelConfig {
 public:
  virtual ~ModelConfig() = default;
  [[nodiscard]] const ModelFamily& family() const { return *family_; }

  /// The configuration must have passed check().
  [[nodiscard]] virtual Model make(const UnitOptions& options) const = 0;
  [[nodiscard]] Model make() const { return make(UnitOptions()); }
  [[nodiscard]] virtual std::int64_t vocabulary() const = 0;
  /// The width of the residual stream.
  [[nodiscard]] virtual std::int64_t hidden() const = 0;
  /// The features of an attention head, and the keys that determine them.
  struct HeadSize {
    std::string_view keys;
    std::int64_t value = 0;
  };
  [[nodiscard]] virtual HeadSize head_size() const = 0;
  [[nodiscard]] virtual HfNames hf_names() const = 0;
  /// Properties of the blocks that options of other programs can state.
  struct Parts {
    std::string_view norm;       ///< "LayerNorm" or "RMSNorm"
    std::string_view positions;  ///< "learned_absolute", "rope" or "relative"
    bool swiglu = false;         ///< the MLP is gated by SiLU
    bool biases = false;         ///< linear layers have biases, except those of the next line
    bool qkv_biases = false;
    bool tied = false;  ///< the head uses the weights of the embedding
    std::int64_t heads = 0;
    std::int64_t key_value_heads = 0;
  };
  [[nodiscard]] virtual Parts parts() const = 0;

  /// Reads the keys of a config.json (`path` is for messages); absent ones keep their values.
  /// Throws Error{input} naming the file and the key.
  void read(const std::string& text, const std::string& path);

  /// Decides settings that config.json leaves open, by the tensors stored beside it.
  virtual void settle(const StoredTensor& /*stored*/) {}

  /// Applies "n_layer=2,n_embd=64", with the family's own keys or the general ones that Hugging
  /// Face accepts for them. A size derived from others, like GPT-2's n_inner, stays derived unless
  /// it is named. Throws Error{usage} naming the bad item.
  void apply_overrides(std::string_view overrides);

  /// Throws Error{usage} naming the values that are out of range or inconsistent.
  void check() const;

  [[nodiscard]] std::vector<ConfigDifference> differences(const ModelConfig& after) const;

  /// Returns the config.json for weights of `dtype` (f32, bf16 or f16): `source`, in its order,
  /// with the changes, or a new one. Ids of special tokens beyond a smaller vocabulary become null.
  [[nodiscard]] std::string to_json(DType dtype = DType::f32) const;

  /// Trained on the bytes of text, although the vocabulary is larger: "dstrain_tokenizer": "byte".
  bool byte_tokens = false;
  /// The config.json that this was read from; unchanged parts of it are written again. Empty: none.
  std::string source{};

 protected:
  explicit ModelConfig(const ModelFamily& family) : family_(&family) {}
  ModelConfig(const ModelConfig&) = default;
  ModelConfig(ModelConfig&&) = default;
  ModelConfig& operator=(const ModelConfig&) = default;
  ModelConfig& operator=(ModelConfig&&) = default;

  // For settings that are not in the table of fields.
  virtual void read_more(const nlohmann::json& /*document*/, const std::string& /*path*/) {}
  virtual void write_more(nlohmann::ordered_json& /*document*/) const {}
  /// Called if every field is in its range.
  virtual void check_more(std::vector<std::string>& /*problems*/) const {}

 private:
  [[nodiscard]] nlohmann::ordered_json new_document() const;
  [[nodiscard]] nlohmann::ordered_json changed_document() const;

  const ModelFamily* family_;
};

}  // namespace dstrain::model
