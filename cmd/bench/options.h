#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/model/model_config.h"

namespace dstrain::bench {

/// What `dstrain bench` is asked for.
struct Options {
  enum class What { gemm, comm, adam, checkpoint, io };
  What what = What::gemm;
  bool json = false;
  int runs = 20;  ///< timed, after one more to warm up
  // gemm
  std::string model_name = "gpt2";
  std::unique_ptr<const model::ModelConfig> model;
  std::int64_t sequences = 4;
  std::int64_t tokens = 512;
  bool cpu_time = false;  ///< of comm and adam: time on the processor, not by the clock
  // adam
  std::int64_t numel = std::int64_t{1} << 25;
  // checkpoint and io
  Bytes bytes = gibibyte;
  std::string directory = ".";
  // io
  std::vector<Bytes> block_sizes;
  std::vector<int> queue_depths{8, 32};
  std::vector<int> io_threads{1, 2};
  // comm
  std::vector<Bytes> sizes;  ///< of `whole`, each divisible by the bytes of a float per rank
};

/// `arguments`: what follows `bench`. Throws Error{usage} or Error{input}.
Options parse_options(std::span<const std::string> arguments, int world_size);

/// What `bench --help` prints.
std::string help();

}  // namespace dstrain::bench
