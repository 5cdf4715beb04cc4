#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/model/model.h"
#include "tests/support/random_values.h"

namespace dstrain::test {

/// A model run unit by unit in one process: holds parameters, gradients and activations by name,
/// and what each unit saved. Gradients of parameters with several users are added up. Parameters
/// are given as floats and handed on in the model's dtype; the memory of activations and of what is
/// saved holds that dtype.
class UnitChain {
 public:
  UnitChain(const model::Model& model, model::BatchShape shape);

  /// Draws every parameter from normal(0, stddev), norms around 1, so that no gradient vanishes.
  void fill(std::uint64_t seed, float stddev);

  /// One forward pass over all units but the last. Then loss() or backward().
  void forward();
  /// The head's forward.
  double loss();
  /// The head in one go, then the other units back to front; gradients overwritten first.
  double backward(float label_weight);
  /// One unit's backward after backward(): every gradient overwritten, or every one added to.
  void backward_unit(std::size_t unit, bool accumulate);
  /// (B, V) logits of the last position.
  std::vector<float> last_logits();

  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  std::vector<std::int32_t> source;  ///< of an encoder-decoder, as the next one
  std::vector<std::int32_t> source_count;
  model::DropoutSource dropout;           ///< but for its counter
  std::array<std::int64_t, 2> counter{};  ///< of dropout
  std::map<std::string, std::vector<float>> parameters;
  std::map<std::string, std::vector<float>> gradients;
  std::map<std::string, std::vector<float>> activations;
  std::map<std::string, std::vector<float>> activation_gradients;
  std::vector<std::vector<float>> saved;  ///< by unit

 private:
  struct Views;
  class Tiles;
  HostView parameter_view(const std::string& name);
  model::GradientTarget gradient_target(const std::string& name);
  HostView activation_view(std::vector<float>& memory, const model::ActivationSpec& activation);
  model::UnitCall call_of(std::size_t unit, Views& views);

  const model::Model& model_;
  model::BatchShape shape_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, model::ActivationSpec> activation_specs_;
  std::map<std::string, std::vector<std::uint16_t>> rounded_;  ///< parameters of a bf16 model
  std::map<std::string, bool> written_;  ///< gradients that hold something already
  std::vector<float> workspace_;
  float label_weight_ = 0;
  double loss_ = 0;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
};

}  // namespace dstrain::test
