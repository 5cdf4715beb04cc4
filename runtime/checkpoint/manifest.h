#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/checksum.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace dstrain::checkpoint {

/// One file of a checkpoint.
struct FileRecord {
  std::string path;  ///< relative to the checkpoint's directory, with '/'
  Bytes bytes = 0;
  std::vector<Checksum> chunks;
};

/// The name of the files of a rank with the states that a run resumes from, and of those with the
/// weights of a model that computes in 16 bits, which are made from the states.
inline constexpr const char* optimizer_file = "optim_states";
inline constexpr const char* model_file = "model_states";

/// A state with one value per element of every parameter: "fp32", "exp_avg", "exp_avg_sq", and
/// "weights" if the model computes in 16 bits.
struct StateRecord {
  std::string name;
  DType dtype = DType::f32;
  std::string file;  ///< the kind of a rank's file that holds it
};

/// Elements [begin, end) of a parameter, row-major, that one rank's files hold. In a file, the
/// rank's slices of a parameter are, one after another, a tensor of one dimension named STATE + "."
/// + PARAMETER.
struct Slice {
  int rank = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct TensorRecord {
  std::string name;  ///< of the parameter
  Shape shape;
  std::vector<Slice> slices;  ///< in order of `begin`; they tile the parameter
};

/// The contents of a checkpoint: all of its files except manifest.json itself.
struct Manifest {
  std::string program;  ///< the writer, with its version; empty: this program
  std::int64_t step = 0;
  int world_size = 1;  ///< number of ranks that wrote
  std::vector<StateRecord> states;
  std::vector<TensorRecord> tensors;
  std::vector<FileRecord> files;  ///< in order of `path`

  /// Returns "global_step12/zero_pp_rank_3_mp_rank_00_optim_states.safetensors": DeepSpeed's names.
  [[nodiscard]] std::string shard_path(const StateRecord& state, int rank) const;
};

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr Bytes manifest_bytes_max = 256 * mebibyte;

/// Integers in a manifest go up to 2^53, which every JSON reader represents exactly.
inline constexpr std::int64_t manifest_number_max = std::int64_t{1} << 53;
/// Strings in a manifest consist of printable ASCII that needs no escape.
constexpr bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/// Returns the first rule that a manifest breaks, or an empty text: slices tile, files are named
/// once and plainly (no way out of the directory), sizes are sane, each shard is among the files.
/// Manifests from parse_manifest keep all of them.
std::string broken_rule(const Manifest& manifest);

}  // namespace dstrain::checkpoint
