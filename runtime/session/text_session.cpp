#include "runtime/session/text_session.h"

namespace dstrain::session {
namespace {

/// Whether the parameters of a unit are gathered from several ranks before it runs.
bool gathers(const RunSetup& setup, const JoinedRank& rank) {
  return rank.worker().world_size > 1 && setup.settings.zero.stage == 3;
}

}  // namespace

TextSession::TextSession(const RunSetup& setup,
                         JoinedRank& rank,
                         const Remedies& remedies,
                         const engine::ChoiceOptions& choice,
                         engine::Generator::Cache cache)
    : session_(session_inputs(setup, rank, remedies)),
      generator_(session_.decoder(),
                 {.choice = choice, .gathers = gathers(setup, rank), .cache = cache},
                 session_.control_group()) {
  session_.store().load({*setup.initial_parameters}, session_.streams().compute);
}

void TextSession::run(std::span<const engine::TextRequest> requests,
                      engine::TextListener& listener) {
  generator_.run(requests, listener);
}

}  // namespace dstrain::session
