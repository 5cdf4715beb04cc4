#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/label.h"
#include "runtime/base/pair_tokens.h"
#include "runtime/base/typed_index.h"
#include "runtime/model/hf_companions.h"
#include "runtime/model/hf_names.h"
#include "runtime/model/unit.h"

namespace dstrain::model {

/// Parameters that are gathered, released and reduced together: those of a unit without its tiles,
/// or a tile.
struct Part {
  static constexpr int no_tile = -1;
  int unit = 0;
  int tile = no_tile;  ///< index into UnitSpec::tiles
  [[nodiscard]] bool is_tile() const { return tile != no_tile; }
};

/// An index into Model::parts().
enum class PartId : int {};

/// The attention of all layers of one kind.
struct AttentionWidth {
  std::int64_t width = 0;  ///< heads x head size, summed over the layers
  Axis queries = Axis::target;
  Axis keys = Axis::target;
  bool causal = false;
};

/// A model: units in the order in which forward runs them (a chain or any acyclic flow of named
/// activations), and the facts that the trainer needs.
struct Model {
  std::string name;          ///< "gpt2"
  DType dtype = DType::f32;  ///< f32, bf16 or f16: of the parameters and activations of units
  DeviceKind device = DeviceKind::cpu;       ///< device kind of the streams that units run on
  std::vector<std::unique_ptr<Unit>> units;  ///< the last one computes the loss
  std::int64_t vocabulary = 0;               ///< V: tokens are in [0, V)
  std::int64_t positions = 1 << 24;          ///< longest sequence
  /// All keys of a longer sequence are rotated by other angles (Rotary::short_positions); 0: they
  /// are not.
  std::int64_t short_context = 0;
  std::int64_t hidden = 0;  ///< C; for "auto" sizes in a configuration
  std::int64_t layers = 0;  ///< L
  std::vector<AttentionWidth> attention;
  std::optional<PairTokens> pairs;  ///< set for an encoder-decoder, whose samples have sources
  bool outputs_first = false;       ///< weights of linear layers are (outputs, inputs), as in
                                    ///< torch.nn.Linear, not (inputs, outputs)
  HfNames hf_names;
  std::string config_json;                ///< the Hugging Face config.json to export
  std::vector<CompanionFile> companions;  ///< to export beside it

  [[nodiscard]] LossSpec loss() const { return units.back()->spec().loss.value_or(LossSpec{}); }
  /// Returns F, which is the same for all units that read UnitCall::features; 0: none does.
  [[nodiscard]] std::int64_t features() const;
  /// Returns every unit's own parameters, in the order of the units.
  [[nodiscard]] std::vector<ParameterSpec> parameters() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  /// Returns the parts unit by unit: the unit's own part, then its tiles in order.
  [[nodiscard]] TypedVector<PartId, Part> parts() const;
  /// Returns the FLOP of forward and backward over a batch, counted as in llm.c: 6 for each
  /// parameter and row of its unit's axis, and for attention of T queries to S keys 12 T S A with A
  /// = AttentionWidth::width, half of that if causal.
  [[nodiscard]] double flops(BatchShape shape) const;
};

}  // namespace dstrain::model
