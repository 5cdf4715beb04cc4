#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/engine/frame_runner.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::engine {

/// Runs a model over sequences that grow: each has a slot of a cache with the keys and values of
/// the tokens that were run, so that a call runs only new tokens. All memory is allocated, and all
/// plans are made, by the constructor. The bits of a sequence's logits do not depend on the other
/// sequences of a call. Owns the cache. run() and pass() synchronize the compute stream before
/// returning.
class Decoder {
 public:
  struct Options {
    std::int64_t slots = 1;
    std::int64_t positions = 0;  ///< most tokens of a sequence
    std::int64_t chunk = 512;    ///< most tokens of a prompt that run at once
    std::int64_t source = 0;     ///< most tokens of a source, of an encoder-decoder
  };
  /// The memory that it takes.
  static FrameBytes bytes(const model::Model& model, const Options& options);
  /// The part of that for the cache, which is in the device's memory.
  static Bytes cache_bytes(const model::Model& model, const Options& options);

  /// All of `inputs` must outlive the decoder.
  Decoder(const EngineInputs& inputs, const Options& options, StreamView stream);

  /// The next tokens of some sequences.
  struct Batch {
    std::span<const std::int32_t> tokens;  ///< (B, T): one sequence, or one token of each
    std::span<const std::int32_t> slot;    ///< (B)
    std::span<const std::int32_t> past;    ///< (B): tokens of the sequence that were run before
    /// (B): tokens of the sequence when the whole prompt has run; see Model::short_context.
    std::span<const std::int32_t> length;
    std::span<const std::int32_t> source{};        ///< (S) of a sequence that begins, or empty
    std::span<const std::int32_t> source_count{};  ///< (B), of an encoder-decoder
  };
  /// Returns the logits (B, V), f32, of the tokens that follow; valid until the next call.
  /// Collective if the parameters have to be gathered: every rank calls run() or pass(), with or
  /// without sources alike.
  HostView run(const Batch& batch);
  /// A sequence that another one becomes.
  struct Copy {
    std::int32_t from = 0;    ///< slots
    std::int32_t to = 0;      ///< differs from those that this call reads or writes otherwise
    std::int64_t past = 0;    ///< tokens of the sequence that were run
    std::int64_t source = 0;  ///< tokens of its source; 0 if `to` has the same source
  };
  /// Copies what the cache has of some sequences, within the device's memory. Asynchronous on the
  /// compute stream.
  void copy(std::span<const Copy> copies);
  /// Takes part in a run() of other ranks.
  enum class Sources { none, some };
  void pass(Sources sources);

  /// Returns how many tokens of a sequence that were run last can be taken back, for others to
  /// follow the ones before: a layer with a window forgets what is far behind it.
  [[nodiscard]] std::int64_t rewind_max() const { return rewind_max_; }

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const model::Model& model() const { return inputs_.model; }

 private:
  /// Device memory that a call reads.
  struct CallInputs {
    CallInputs(const TensorView& all, const Options& options);
    TensorView block;   ///< u8: all of them
    TensorView tokens;  ///< (max(chunk, slots)) i32
    TensorView slot;    ///< (slots) i32, like the next three
    TensorView past;
    TensorView length;
    TensorView source_count;
    TensorView source;  ///< (source) i32
    Bytes bytes;
  };
  using Plans = std::map<model::BatchShape, std::shared_ptr<const FramePlan>>;
  struct Planned {
    Frame frame;
    std::vector<model::PartId> parts;
  };
  static Options sane(const model::Model& model, Options options);
  static Plans make_plans(const model::Model& model, const Options& options);
  static std::int64_t rewind_max_of(const model::Model& model, Options options);
  static Bytes frame_bytes(const Plans& plans);
  /// The shape of a plan that has room for `shape`.
  static model::BatchShape room_for(model::BatchShape shape, const Options& options);
  Planned& planned(model::BatchShape shape);
  void stage(std::span<const std::int32_t> values, const TensorView& target);
  void fill(const Batch& batch);
  model::UnitCall call_of(const model::BatchShape& shape) const;

  EngineInputs inputs_;
  Options options_;
  StreamView stream_;
  FrameRunner runner_;
  std::int64_t rewind_max_;
  bool apart_;  ///< whether the device's memory is not the host's
  Plans plans_;
  Buffer frame_memory_;
  Buffer cache_memory_;
  Buffer device_inputs_;  ///< if `apart_`
  HostBuffer staging_;    ///< the inputs, which CPU units read from here, then the logits
  CallInputs staged_;
  CallInputs call_inputs_;
  HostView logits_;                          ///< (slots V) f32
  std::vector<model::CacheCall> caches_;     ///< per unit
  std::vector<model::CachedTensor> cached_;  ///< of all units
  std::map<model::BatchShape, Planned> frames_;
  CpuStream host_stream_{CpuStream::Mode::inline_on_caller};
};

}  // namespace dstrain::engine
