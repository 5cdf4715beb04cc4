#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/label.h"
#include "runtime/base/typed_index.h"
#include "runtime/model/hf_companions.h"
#include "runtime/model/hf_names.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// What is gathered, released and reduced as one: a unit's parameters without its tiles, or a tile.
struct Part {
  static constexpr int no_tile = -1;
  int unit = 0;
  int tile = no_tile;  ///< index into UnitSpec::tiles
  [[nodiscard]] bool is_tile() const { return tile != no_tile; }
};

/// Index into Model::parts().
enum class PartId : int {};

/// Attention of all layers of a kind.
struct AttentionWidth {
  std::int64_t width = 0;  ///< heads x the size of one, added up over the layers
  Axis queries = Axis::target;
  Axis keys = Axis::target;
  bool causal = false;
};

/// A model: units in the order in which forward runs them (a chain or any acyclic flow of named
/// activations), and what the trainer must know of it.
struct Model {
  std::string name;          ///< "gpt2"
  DType dtype = DType::f32;  ///< f32, bf16 or f16: of the parameters and activations that units see
  DeviceKind device = DeviceKind::cpu;       ///< of that kind are the streams that units run on
  std::vector<std::unique_ptr<Unit>> units;  ///< the last one computes the loss
  std::int64_t vocabulary = 0;               ///< V: tokens are in [0, V)
  std::int64_t positions = 1 << 24;          ///< longest sequence
  std::int64_t hidden = 0;                   ///< C; "auto" sizes in a configuration use it
  std::int64_t layers = 0;                   ///< L
  std::vector<AttentionWidth> attention;
  std::optional<PairTokens> pairs;  ///< of an encoder-decoder, whose samples have sources
  bool outputs_first = false;       ///< weights of linear layers are (outputs, inputs), as those of
                                    ///< torch.nn.Linear, not (inputs, outputs)
  HfNames hf_names;
  std::string config_json;                ///< the Hugging Face config.json to export
  std::vector<CompanionFile> companions;  ///< to export beside it

  /// Every unit's own parameters, in the order of the units.
  [[nodiscard]] std::vector<ParameterSpec> parameters() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  /// Unit by unit: the unit's own part, then its tiles in order.
  [[nodiscard]] TypedVector<PartId, Part> parts() const;
  /// FLOP of forward and backward over a batch, as llm.c counts: 6 for each parameter and row of
  /// its unit's axis, and for attention of T queries to S keys 12 T S A with A =
  /// AttentionWidth::width, half of that if causal.
  [[nodiscard]] double flops(BatchShape shape) const;
};

}  // namespace dstrain::model
