#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "cmd/generate_setup.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/memory_setup.h"
#include "zero/sharded_store.h"

namespace dstrain::cmd {
namespace {

/// Before anything is allocated.
void check_memory(const GenerateSetup& setup, const zero::FlatLayout& layout, Bytes budget) {
  const model::Model& model = setup.model;
  if (!shares_host_memory(model.device)) return;
  const model::BatchShape longest{
      1, std::min(setup.given + setup.sampling.max_new_tokens - 1, model.positions),
      model.pairs ? std::ssize(setup.prompt) : 0};
  const zero::MemoryPlan plan = zero::plan_memory(
      layout, {.device = model.device,
               .trains = false,
               .activations = engine::Engine::activation_bytes(model, {.shape = longest})});
  const auto exceeded = session::exceeded_memory(plan, 1, budget);
  if (exceeded) fail(ErrorCode::config, "{}", exceeded->reason);
}

}  // namespace

int generate_command(std::span<const std::string> arguments) {
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
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
  const zero::FlatLayout layout(setup.model, {});
  check_memory(setup, layout, worker.host_memory_bytes);
  const std::unique_ptr<Backend> backend = open_backend({device, worker.local_rank});
  const std::unique_ptr<Stream> stream = backend->make_stream(Backend::StreamUse::computing);
  MemoryResource& memory = backend->memory();
  HostMemory host;
  const std::unique_ptr<comm::ControlGroup> control = comm::make_self_control_group();
  const std::unique_ptr<comm::Communicator> communicator =
      backend->connect({comm::make_self_communicator(), *control, host});
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
