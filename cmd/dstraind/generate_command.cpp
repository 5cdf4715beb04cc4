#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "cmd/dstraind/compute_threads.h"
#include "cmd/generate_setup.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/log.h"
#include "runtime/base/worker_env.h"
#include "runtime/comm/self/self_communicator.h"
#include "zero/sharded_store.h"

namespace dstrain::cmd {

int generate_command(std::span<const std::string> arguments) {
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(worker);
  const DeviceKind device = resolve_device(worker.device);
  const GenerateSetup setup =
      set_up_generation(arguments, read_generate_input(arguments), worker.world_size, device);
  for (const std::string& warning : setup.warnings) log_warning(warning);
  log_info(setup.mode);
  if (!setup.knows_tokens) {
    log_warning(
        "the prompt is read as bytes: only a model trained with --tokenizer byte answers in text; "
        "--tokenizer DIR names its tokenizer");
  }
  const std::unique_ptr<Backend> backend = open_backend({device, worker.local_rank});
  const std::unique_ptr<Stream> stream = backend->make_stream(Backend::StreamUse::computing);
  MemoryResource& memory = backend->memory();
  HostMemory host;
  const std::unique_ptr<comm::ControlGroup> control = comm::make_self_control_group();
  const std::unique_ptr<comm::Communicator> communicator =
      backend->connect({comm::make_self_communicator(), *control, host});
  const zero::FlatLayout layout(setup.model, {});
  zero::ShardedStore store(
      {layout, *communicator, {{{memory, memory, memory}, {host, host, host}, host}, memory}}, {},
      *stream);
  store.load({*setup.parameters}, *stream);
  std::vector<std::int32_t> tokens;  // a decoder's alone, or what continues the prompt
  if (!setup.model.pairs) tokens = setup.prompt;
  std::ranges::copy(
      engine::generate({setup.model, store, memory, host}, setup.prompt, setup.sampling, *stream),
      std::back_inserter(tokens));
  fmt::print("{}\n", setup.encoder->decode(tokens));
  return status::done;
}

}  // namespace dstrain::cmd
