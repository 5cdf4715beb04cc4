#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <dstrain/export.h>
#include <dstrain/model.h>

namespace dstrain {

/// Elementwise functions, with Hugging Face's names.
enum class Activation {
  gelu_tanh,   ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  gelu,        ///< x Phi(x)
  quick_gelu,  ///< x sigmoid(1.702 x)
  silu,        ///< x sigmoid(x)
  relu,        ///< max(x, 0)
};

/// How a parameter begins where no weights are loaded.
struct Initial {
  enum class Kind { normal, zeros, ones };
  Kind kind = Kind::normal;
  double stddev = 0.02;  ///< of `normal`, around 0
};

/// A layer of one's own, which runs on the host: from and to a GPU its values are copied. It keeps
/// nothing between calls, so one layer may serve several micro-batches at once. All values are
/// fp32, whatever the precision of the run, and row-major.
class DSTRAIN_API CustomLayer {
 public:
  CustomLayer() = default;
  CustomLayer(const CustomLayer&) = delete;
  CustomLayer& operator=(const CustomLayer&) = delete;
  CustomLayer(CustomLayer&&) = delete;
  CustomLayer& operator=(CustomLayer&&) = delete;
  virtual ~CustomLayer();

  struct Values {
    std::int64_t sequences = 0;
    std::int64_t length = 0;
    std::vector<std::span<const float>> inputs;      ///< each (sequences, length, features)
    std::vector<std::span<const float>> parameters;  ///< in the order of CustomLayerOptions
  };
  struct Gradients {
    std::span<const float> output;             ///< (sequences, length, features): given
    std::vector<std::span<float>> inputs;      ///< to be overwritten
    std::vector<std::span<float>> parameters;  ///< zero at first
  };
  /// Writes `output`, (sequences, length, features).
  virtual void forward(const Values& values, std::span<float> output) const = 0;
  /// Writes the gradients of inputs and parameters from that of the output.
  virtual void backward(const Values& values, const Gradients& gradients) const = 0;
};

struct CustomParameter {
  std::string name;
  std::vector<std::int64_t> shape;
  Initial initial{};
};

struct CustomLayerOptions {
  std::int64_t features = 0;  ///< of the output; 0: those of the first input
  std::vector<CustomParameter> parameters{};
};

/// A value of a unit: (sequences, length, features) for any batch.
struct Value {
  int index = -1;
};

/// Records the layers of a unit. Each has a backward of its own; memory and gradients follow. A
/// layer's `name` stands before the names of its parameters: UNIT.NAME.weight, UNIT.NAME.bias.
class DSTRAIN_API UnitBuilder {
 public:
  /// What an earlier unit has written.
  Value read(const std::string& activation);

  struct Embedding {
    std::int64_t features = 0;
    bool positions = false;  ///< adds a learned vector for each position: NAME.positions
    Initial initial{};
  };
  /// Rows of NAME.weight, (vocabulary, features), by the batch's tokens.
  Value embedding(const std::string& name, const Embedding& embedding);
  /// Batch::features.
  Value features();
  Value layer_norm(Value input, const std::string& name, double epsilon = 1e-5);
  Value rms_norm(Value input, const std::string& name, double epsilon = 1e-6);

  struct Linear {
    std::int64_t outputs = 0;
    bool bias = true;
    Initial initial{};
  };
  /// input weight^T + bias, with a weight of (outputs, inputs) as in torch.nn.Linear.
  Value linear(Value input, const std::string& name, const Linear& linear);

  struct Attention {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  ///< of keys and values; 0: as many as `heads`
    bool causal = true;
    std::int64_t window = 0;  ///< each query sees so many keys up to its own; 0: all
    double rotary_base = 0;   ///< rotary positions with that base, such as 10000; 0: none
    double dropout = 0;       ///< of the probabilities
  };
  /// Of queries, keys and values that are packed in this order: (heads + 2 kv_heads) parts of equal
  /// width. Scores are divided by the root of that width.
  Value attention(Value packed, const Attention& attention);

  Value activation(Value input, Activation kind);
  /// activation(first half of the features) times the second half.
  Value gated(Value packed, Activation kind);
  Value dropout(Value input, double rate);
  Value scale(Value input, double factor);
  /// residual + branch, with dropout of the branch.
  Value add(Value residual, Value branch, double dropout = 0);
  Value custom(const std::vector<Value>& inputs,
               const std::string& name,
               std::shared_ptr<const CustomLayer> layer,
               const CustomLayerOptions& options = {});

  /// Ends the unit: later ones may read the value by this name. A unit writes one value.
  void write(Value value, const std::string& activation);
  // Losses, which end the last unit, after all of its layers. With several calls the loss is the
  // sum of all, each times its `factor`, and logits() are those of the first. Each is a mean over
  // the positions that count. All cross-entropies have the same number of classes, as they share
  // the labels; without any, a label says only whether the position counts.
  // Layers of this unit see each position by itself: no attention, dropout, embedding or custom
  // layer.
  struct Classes {
    std::int64_t count = 0;
    double factor = 1;
    Initial initial{};  ///< of the weight
  };
  /// Cross-entropy of the classes 0 to count - 1, which the labels name, by logits of NAME.weight,
  /// (count, features).
  void cross_entropy(Value input, const std::string& name, const Classes& classes);
  /// The same with the weight of an embedding, given by its whole name: classes are tokens.
  void cross_entropy_tied(Value input, const std::string& weight, double factor = 1);
  /// Of `input` as predictions of Batch::targets: at each position the mean over its
  /// Sizes::targets features of the squared differences, as torch.nn.MSELoss.
  void mean_squared_error(Value input, double factor = 1);
  /// A loss of one's own: the mean at each position over the features of `input`, such as what a
  /// custom layer of an earlier unit has computed, which may read what it needs as features().
  void mean_value(Value input, double factor = 1);

  class DSTRAIN_INTERNAL Impl;
  explicit UnitBuilder(Impl& impl) : impl_(impl) {}

 private:
  Impl& impl_;
};

/// Describes a model of one's own, unit by unit in the order in which forward runs them. A unit is
/// what is gathered, released and recomputed at a time: the embedding, a block, the head.
class DSTRAIN_API ModelBuilder {
 public:
  struct Sizes {
    std::int64_t vocabulary = 0;  ///< token ids are 0 to vocabulary - 1; 0: it reads no tokens
    std::int64_t positions = 0;   ///< longest sequence
    std::int64_t features = 0;    ///< floats of each position in Batch::features
    std::int64_t targets = 0;     ///< floats of each position in Batch::targets
  };
  /// `name`: the "model_type" of the config.json that goes out with the model.
  ModelBuilder(const std::string& name, const Sizes& sizes);
  /// `record` is called whenever an engine is made, so it must record the same each time.
  ModelBuilder& unit(const std::string& name, std::function<void(UnitBuilder&)> record);
  /// Returns the model with random weights or, with a directory, those of its model.safetensors,
  /// such as Engine::save_pretrained() has written, or of a checkpoint. Throws Error{config} that
  /// names the unit for layers that do not fit together, Error{input} for no such directory.
  [[nodiscard]] Model build(const std::filesystem::path& weights = {}) const;

 private:
  class DSTRAIN_INTERNAL Recording;
  [[nodiscard]] DSTRAIN_INTERNAL Recording check() const;
  struct Unit {
    std::string name;
    std::function<void(UnitBuilder&)> record;
  };
  std::string name_;
  Sizes sizes_;
  std::vector<Unit> units_;
};

}  // namespace dstrain
