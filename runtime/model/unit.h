#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/device/stream.h"
#include "runtime/model/parameter.h"
#include "runtime/ops/cached_attention.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::model {

/// Options for the units of a model.
struct UnitOptions {
  DType dtype = DType::f32;             ///< f32, bf16 or f16, of parameters and activations
  std::int64_t in_splits = 1;           ///< tiles of each weight of a block, see LinearWeight
  DeviceKind device = DeviceKind::cpu;  ///< whose ops the units call, for Unit::memory()
};

/// The positions of an activation: those of the target, whose tokens are predicted one by one, or
/// of the source of an encoder-decoder, from which they are predicted.
enum class Axis : std::int8_t { target, source };

/// B sequences of T tokens and, for an encoder-decoder, B sources of S tokens.
struct BatchShape {
  std::int64_t sequences = 0;  ///< B
  std::int64_t tokens = 0;     ///< T, per sequence
  std::int64_t source = 0;     ///< S; 0: no sources, or they are in the cache
  /// Most positions of a sequence, with those in the cache; 0: no sequence has any there.
  std::int64_t context = 0;
  [[nodiscard]] std::int64_t rows() const { return sequences * tokens; }
  /// The positions of both axes.
  [[nodiscard]] std::int64_t positions() const { return sequences * (tokens + source); }
  /// Returns the shape of tensors with positions on `axis`: on that of the source, T is S.
  [[nodiscard]] BatchShape on(Axis axis) const {
    return {sequences, axis == Axis::source ? source : tokens, source, context};
  }
  bool operator<(const BatchShape& other) const {
    const auto all = [](const BatchShape& s) {
      return std::array{s.sequences, s.tokens, s.source, s.context};
    };
    return all(*this) < all(other);
  }
};

/// What a model that decodes keeps of its sequences: one slot each.
struct CacheShape {
  std::int64_t slots = 0;
  std::int64_t positions = 0;  ///< most of a sequence
  std::int64_t chunk = 0;      ///< most tokens of a sequence per call
  std::int64_t source = 0;     ///< most tokens of a source
};

/// A named tensor that flows between units: (B, T, features), or (B, S, features) on the axis of
/// the source. Its gradient has the same type.
struct ActivationSpec {
  std::string name;
  std::int64_t features = 0;
  DType dtype = DType::f32;
  Axis axis = Axis::target;
};

/// Rows of a parameter (R, C) that a unit uses separately.
struct ParameterTile {
  std::size_t parameter = 0;  ///< index into UnitSpec::parameters
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

/// What the loss of a model is made of.
struct LossSpec {
  std::int64_t outputs = 0;      ///< V: the columns of UnitCall::logits
  std::int64_t classes = 0;      ///< labels are in [0, classes); 0: they only say which rows count
  std::int64_t targets = 0;      ///< K: the columns of UnitCall::targets
  std::vector<float> factors{};  ///< of the losses that are summed, in order
};

/// The parameters and activations of a unit. The order of the names is the order of the views in
/// UnitCall.
struct UnitSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;  ///< owned
  std::vector<std::string> borrowed;      ///< parameters that other units own
  /// Tiles of owned parameters that are too large to be whole at any time, from the first row of
  /// each to its last, in the order in which forward uses them; backward uses the reverse order.
  std::vector<ParameterTile> tiles;
  std::vector<std::string> reads;
  std::vector<ActivationSpec> writes;
  std::int64_t features = 0;     ///< F: the columns of UnitCall::features, if it reads those
  std::optional<LossSpec> loss;  ///< of the last unit, which computes it: see Unit::backward
};

/// Bytes that the engine must provide per call.
struct UnitMemory {
  Bytes saved = 0;              ///< kept from forward to backward
  Bytes forward_workspace = 0;  ///< only during forward
  Bytes backward_workspace = 0;
};

/// The target of a gradient: the callee overwrites `values`, or adds to them; empty: it is not
/// needed. Gradients of parameters are f32, whatever the dtype of the parameters.
struct GradientTarget {
  TensorView values;
  bool accumulate = false;
};

/// Gives a unit the tiles of its parameters one at a time; see UnitSpec::tiles.
class TileLender {
 public:
  virtual ~TileLender() = default;
  /// Returns the values (rows, C) of a tile, valid until release().
  virtual TensorView acquire(std::size_t tile) = 0;
  virtual void release(std::size_t tile) = 0;
  /// Returns the target for the gradients (rows, C) of a tile, valid until reduce(). After that the
  /// tile may be updated, and is not used again in that call. Empty for a frozen one.
  virtual GradientTarget gradients(std::size_t tile) = 0;
  virtual void reduce(std::size_t tile) = 0;
};

/// The source of the random numbers of a call; equal for a sample on any number of ranks.
struct DropoutSource {
  std::uint64_t seed = 0;
  TensorView counter{};    ///< (2) i64: the step, and the index of sequence 0 in its global batch
  std::uint32_t unit = 0;  ///< index of the unit in the model
  bool training = false;   ///< false: dropout is the identity
};

/// The cache of a call: its layers store what they compute of the call's tokens, and read what they
/// have stored of earlier ones.
struct CacheCall {
  CacheShape shape;
  TensorView memory;  ///< u8: Unit::cache_bytes(), 64-byte aligned
  ops::CachePlaces places;
};

/// A tensor of a unit's cache: (slots, R, columns), dense. Position p of a sequence is in row p mod
/// R of its slot.
struct CachedTensor {
  TensorView view;
  Axis axis = Axis::target;  ///< of the positions
};

/// The arguments of a unit for one forward or backward over one micro-batch. Views are on the
/// stream's device.
struct UnitCall {
  BatchShape shape;
  TensorView tokens;  ///< (B, T) i32: token ids
  TensorView labels;  ///< (B, T) i32: already shifted; -100 does not count
  /// (B, T) i32: the first position of the document of each token. Positions count from it, and
  /// causal attention does not see earlier tokens. Empty: there is one document.
  TensorView document_start;
  TensorView features;      ///< (B, T, F) f32: what the batch says of each position besides tokens
  TensorView targets;       ///< (B, T, K) f32: what a regression shall predict
  TensorView source;        ///< (B, S) i32: token ids of the sources
  TensorView source_count;  ///< (B) i32 in [1, S]: number of source tokens; the rest is padding
  TensorView label_weight;  ///< (1) f32: 1 / counted labels of the global batch, which scales the
                            ///< gradient of the loss; backward only
  std::span<const TensorView> parameters;  ///< owned, then borrowed; empty for those in tiles
  TileLender* tiles = nullptr;             ///< not null if the unit has tiles
  std::span<const TensorView> inputs;      ///< activations read
  std::span<const TensorView> outputs;     ///< activations written; values of forward
  TensorView saved;                        ///< u8: UnitMemory::saved bytes, 64-byte aligned
  TensorView workspace;                    ///< u8, likewise
  DropoutSource dropout;
  const CacheCall* cache = nullptr;  ///< null: there is none; forward only

  // Backward only.
  /// In the order of `parameters`; empty for frozen ones.
  std::span<const GradientTarget> parameter_gradients;
  std::span<const TensorView> output_gradients;
  std::span<const GradientTarget> input_gradients;

  // Only for the unit that computes the loss.
  TensorView loss;  ///< (1) f64: the losses (natural log) of the counted labels are added to it
  /// Forward: if not empty, f32 logits (of a regression: its predictions) are written here and no
  /// loss is computed: (B, V) of the last positions, or (B T, V) of all.
  TensorView logits;
};

/// A unit for batches of one shape, or of smaller ones: where its memory lies is decided.
/// Immutable, so one may serve several micro-batches at once. All work goes to `stream`.
class PlannedUnit {
 public:
  virtual ~PlannedUnit() = default;
  [[nodiscard]] virtual const UnitMemory& memory() const = 0;
  /// Writes `outputs` and `saved`. One that computes the loss adds to `loss` and saves nothing.
  virtual void forward(const UnitCall& call, StreamView stream) const = 0;
  /// Computes the gradients of the inputs and parameters from `output_gradients`, `inputs` and
  /// `saved`. One that computes the loss is called without a forward: it adds to `loss` and
  /// computes the gradients together with it, so that logits need not be kept.
  virtual void backward(const UnitCall& call, StreamView stream) const = 0;
};

/// The unit of recomputation, of pipeline stages and, except for its tiles, of gathers and
/// releases: the embedding, one transformer block, the head. Independent of ranks, stages and
/// tiers, and keeps nothing between calls.
class Unit {
 public:
  virtual ~Unit() = default;
  [[nodiscard]] virtual const UnitSpec& spec() const = 0;
  /// The unit must outlive the result.
  [[nodiscard]] virtual std::unique_ptr<const PlannedUnit> plan(BatchShape shape) const = 0;
  /// The bytes of its cache; see CacheCall.
  [[nodiscard]] virtual Bytes cache_bytes(const CacheShape& shape) const = 0;
  /// What is in it.
  [[nodiscard]] virtual std::vector<CachedTensor> cached(const CacheCall& cache) const = 0;
  [[nodiscard]] UnitMemory memory(BatchShape shape) const { return plan(shape)->memory(); }
};

}  // namespace dstrain::model
