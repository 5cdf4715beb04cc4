#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dstrain/config.h>
#include <dstrain/export.h>
#include <dstrain/label.h>
#include <dstrain/model.h>
#include <dstrain/rank.h>

namespace dstrain {

/// Some sequences of one length, row by row. All memory is the caller's and only read.
struct Batch {
  /// (sequences, length), in [0, vocabulary); empty for a model without a vocabulary.
  std::span<const std::int32_t> tokens{};
  /// (sequences, length): the id that shall follow each token, so tokens shifted by one, or its
  /// class; ignored_label does not count. May be empty where there is no loss and for a loss that
  /// knows no classes, of which then all positions count.
  std::span<const std::int32_t> labels{};
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  // Of an encoder-decoder, whose `tokens` are the decoder's inputs:
  std::span<const std::int32_t> source{};  ///< (sequences, source_length)
  std::int64_t source_length = 0;
  /// (sequences): how many source tokens are not padding; empty: all of them.
  std::span<const std::int32_t> source_counts{};
  // Of a model of one's own (ModelBuilder::Sizes):
  std::span<const float> features{};  ///< (sequences, length, features)
  /// (sequences, length, targets): what shall be predicted; may be empty where there is no loss.
  std::span<const float> targets{};
};

/// What InitializeOptions adds to the configuration.
struct InitializeOptions {
  std::int64_t length = 0;              ///< longest sequence; 0: min(1024, the model's positions)
  std::int64_t source_length = 0;       ///< longest source of an encoder-decoder; 0: 1024
  std::uint64_t seed = 42;              ///< of random weights and dropout
  bool gradient_checkpointing = false;  ///< recomputes activations in backward, to save memory
  /// false: a frozen model, without gradients and optimizer states, for evaluate() and logits().
  bool trains = true;
};

/// One optimizer step.
struct StepResult {
  std::int64_t step = 0;     ///< from 1; counts steps that were left out, too
  double loss = 0;           ///< mean over all labels of the global batch, natural log
  double gradient_norm = 0;  ///< of all gradients on all ranks, before clipping; NaN if not taken
  double learning_rate = 0;  ///< with which the parameters were updated
  double loss_scale = 1;     ///< of fp16
  std::int64_t labels = 0;   ///< that counted, on all ranks
  bool taken = true;         ///< false: fp16 overflowed, and the parameters are as before
};

struct SaveOptions {
  std::string tag{};                ///< a name for it; empty: "global_stepN"
  std::string client_state = "{}";  ///< a JSON object, which load_checkpoint() returns
};

/// What load_checkpoint() has found.
struct Loaded {
  std::filesystem::path checkpoint;  ///< the directory
  std::int64_t step = 0;             ///< after which it was saved
  std::string tag;
  std::string client_state;  ///< JSON
};

/// A parameter of a model.
struct ParameterInfo {
  std::string name;  ///< as in the model's safetensors
  std::vector<std::int64_t> shape;
};

/// Whole parameters of an engine on every rank, in fp32 as the optimizer updates them, until
/// release() or the end of its scope; both are collective. Changes that rank 0 makes are kept,
/// those of other ranks are not. Meanwhile the engine makes no other call. It must not outlive the
/// engine.
class DSTRAIN_API GatheredParameters {
 public:
  /// The values of a parameter, row-major. Throws Error{usage} for one that is not gathered.
  [[nodiscard]] std::span<float> operator[](const std::string& name);
  /// Takes rank 0's changes to the engine.
  void release();

  GatheredParameters(GatheredParameters&&) noexcept;
  GatheredParameters& operator=(GatheredParameters&&) = delete;
  GatheredParameters(const GatheredParameters&) = delete;
  GatheredParameters& operator=(const GatheredParameters&) = delete;
  /// release(), unless an exception leaves the scope: then changes are dropped.
  ~GatheredParameters() noexcept(false);

 private:
  friend class Engine;
  class DSTRAIN_INTERNAL Impl;
  explicit GatheredParameters(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A model on all ranks: parameters, gradients and optimizer states, held as the configuration's
/// ZeRO stage and offload say. Every rank makes the same calls in the same order; all methods but
/// the plain getters are collective. Errors are dstrain::Error, the same on every rank where the
/// cause is the same.
class DSTRAIN_API Engine {
 public:
  /// Takes one optimizer step over this rank's share of the global batch: at most
  /// micro_batch() * accumulation_steps() sequences; fewer, or none, are fine. Sequence i of rank r
  /// is number (a N + r) B + i % B of the global batch, with B = micro_batch(), N ranks and a = i /
  /// B: dropout depends on that number, so that the bits are those of `dstrain train` when the
  /// sequences are. Throws Error{input} for tokens outside of the vocabulary or sizes that do not
  /// fit, before anything is computed; Error{diverged} where training cannot go on. An exception
  /// from within a step leaves the engine unusable, and ranks that it did not reach waiting: end
  /// the process.
  StepResult train_batch(const Batch& batch);

  /// The same by hand: call forward_backward() accumulation_steps() times, each with at most
  /// micro_batch() sequences, then step(). Returns the mean loss of this rank's labels; 0 without
  /// any. Gradients are those of the mean over all labels of the step; `labels`: how many these
  /// are on all ranks, where it is known; 0: as many as if all micro-batches had the labels of the
  /// first one, which step() corrects. The bits are those of train_batch() if the number was right.
  double forward_backward(const Batch& micro_batch, std::int64_t labels = 0);
  StepResult step();

  /// The mean loss over all labels of the batches of all ranks, without gradients. Any number of
  /// sequences.
  double evaluate(const Batch& batch);
  /// Returns the logits, (sequences, length, outputs), of this rank's batch, whose labels are not
  /// read; of a regression its predictions. Any number of sequences, which may differ between
  /// ranks. Those of micro_batch() sequences lie in device memory meanwhile, beside the plan.
  std::vector<float> logits(const Batch& batch);

  /// Saves parameters, optimizer states and counts as `directory`/checkpoint-N after step N, or
  /// throws, and earlier checkpoints stay; one after the same step is replaced, with its tag.
  /// Directory, tag and state are rank 0's. Resumes on any number of ranks and any stage, here and
  /// in `dstrain train`.
  void save_checkpoint(const std::filesystem::path& directory, const SaveOptions& options = {});
  /// Goes on from the newest whole checkpoint in `directory`, that of the highest step, or from the
  /// newest with this tag. Returns nothing if there is none, or no such directory. Throws
  /// Error{input} if all are damaged, Error{config} for those of another model.
  std::optional<Loaded> load_checkpoint(const std::filesystem::path& directory,
                                        const std::string& tag = "");
  /// Writes the model in Hugging Face's layout, in the precision in which it computes.
  void save_pretrained(const std::filesystem::path& directory);

  [[nodiscard]] std::vector<ParameterInfo> parameters() const;
  /// Gathers parameters by name, to look at or to change them. While rank 0's changes are taken,
  /// each rank holds its part of parameters and optimizer states in host memory once more.
  [[nodiscard]] GatheredParameters gathered_parameters(const std::vector<std::string>& names);

  [[nodiscard]] std::int64_t steps() const;  ///< so far, with those before a resume
  /// Of this rank at once: train_micro_batch_size_per_gpu.
  [[nodiscard]] std::int64_t micro_batch() const;
  [[nodiscard]] std::int64_t accumulation_steps() const;
  [[nodiscard]] std::int64_t length() const;   ///< longest sequence
  [[nodiscard]] std::int64_t outputs() const;  ///< of logits(): tokens, classes or targets
  [[nodiscard]] double learning_rate() const;  ///< of the next step
  /// Bytes of device memory per rank by the plan, which the engine keeps to.
  [[nodiscard]] std::int64_t planned_bytes() const;

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

 private:
  friend DSTRAIN_API Engine initialize(Rank& rank,
                                       const Config& config,
                                       Model model,
                                       const InitializeOptions& options);
  friend class GatheredParameters;
  class DSTRAIN_INTERNAL Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Makes an engine: plans its memory and refuses what does not fit before it allocates, then loads
/// or draws the weights. A rank may have several engines, of the same configuration or others; each
/// has memory and communicators of its own. Collective. Throws Error{config} for a configuration
/// that does not suit the model or the machine, or where the ranks' ones differ; Error{input} for
/// weights that cannot be read.
DSTRAIN_API Engine initialize(Rank& rank,
                              const Config& config,
                              Model model,
                              const InitializeOptions& options = {});

}  // namespace dstrain
