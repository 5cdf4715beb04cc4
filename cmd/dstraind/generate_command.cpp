#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "cmd/generate_setup.h"
#include "runtime/base/log.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/worker_env.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "zero/sharded_store.h"

namespace dstrain::cmd {

int generate_command(std::span<const std::string> arguments) {
  flush_denormals_in_compute_threads();
  const GenerateSetup setup = set_up_generation(arguments, read_worker_env().world_size);
  if (!setup.knows_tokens) {
    log_warning(
        "the prompt is read as bytes: only a model trained with --tokenizer byte answers in text; "
        "--tokenizer DIR names its tokenizer");
  }
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  const std::unique_ptr<comm::Communicator> communicator = comm::make_self_communicator();
  const zero::FlatLayout layout(setup.model, {});
  const zero::ResidentShards::Memory tier{memory, memory, memory};
  zero::ShardedStore store({layout, *communicator, {{tier, tier, memory}, memory}}, {}, stream);
  store.load({*setup.parameters}, stream);
  std::vector<std::int32_t> tokens = setup.prompt;
  std::ranges::copy(
      engine::generate({setup.model, store, memory, memory}, setup.prompt, setup.sampling, stream),
      std::back_inserter(tokens));
  fmt::print("{}\n", setup.encoder->decode(tokens));
  return status::done;
}

}  // namespace dstrain::cmd
