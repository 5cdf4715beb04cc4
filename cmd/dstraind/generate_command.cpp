#include <algorithm>
#include <iterator>

#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "cmd/generate_setup.h"
#include "runtime/backend/open_backend.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/rank_session.h"

namespace dstrain::cmd {
namespace {

session::Remedies remedies() {
  const auto say = [](auto... /*limits*/) {
    return "a shorter prompt or fewer --max_new_tokens take less, a smaller model far less";
  };
  return {.device = say, .machine = say};
}

/// As one rank holds the longest text that may come of the prompt.
void plan_memory(GenerateSetup& setup) {
  const model::Model& model = setup.run.model;
  config::TrainSettings& settings = setup.run.settings;
  settings.trains = false;
  settings.dtype = model.dtype;
  settings.evaluation.batch_size = 1;
  settings.data.block_size =
      std::min(setup.given + setup.sampling.max_new_tokens - 1, model.positions);
  if (model.pairs) settings.data.source_length = std::ssize(setup.prompt);
  setup.run.memory = session::set_up_memory(settings, model, 1);
}

/// Returns the tokens of the text: of a decoder with those of the prompt.
std::vector<std::int32_t> run(GenerateSetup& setup, const WorkerEnv& worker) {
  plan_memory(setup);
  const session::RunSetup& run = setup.run;
  const session::Remedies helpful = remedies();
  check_budget(run.memory, worker.device_memory_bytes, helpful);
  if (shares_host_memory(run.model.device)) {
    check_machine(run.memory, 1, worker.host_memory_bytes, helpful);
  }
  ProgressPage progress = ProgressPage::from_environment();
  session::JoinedRank rank(worker, run.model.device, progress);
  session::RankSession::Inputs inputs = session::session_inputs(run, rank, helpful);
  inputs.decodes = true;
  session::RankSession session(inputs);
  const StreamView stream = session.streams().compute;
  session.store().load({*run.initial_parameters}, stream);
  std::vector<std::int32_t> tokens;
  if (!run.model.pairs) tokens = setup.prompt;
  std::ranges::copy(engine::generate(session.engine_inputs(), setup.prompt, setup.sampling, stream),
                    std::back_inserter(tokens));
  return tokens;
}

}  // namespace

int generate_command(std::span<const std::string> arguments) {
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  const DeviceKind device = resolve_device(worker.device);
  GenerateSetup setup =
      set_up_generation(arguments, read_generate_input(arguments), worker.world_size, device);
  for (const std::string& warning : setup.warnings) log_warning(warning);
  log_info(setup.mode);
  if (!setup.knows_tokens) {
    log_warning(
        "the prompt is read as bytes: only a model trained with --tokenizer byte answers in text; "
        "--tokenizer DIR names its tokenizer");
  }
  fmt::print("{}\n", setup.encoder->decode(run(setup, worker)));
  return status::done;
}

}  // namespace dstrain::cmd
