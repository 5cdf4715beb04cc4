#pragma once
#include <span>

#include "runtime/engine/generator.h"
#include "runtime/session/run_setup.h"

namespace dstrain::session {

/// A rank that generates texts: its session, with a decoder and loaded parameters. Use from one
/// thread.
class TextSession {
 public:
  /// `setup`, whose memory is that of a decoder, and `rank` must outlive the session; `remedies`
  /// until it is made. Collective.
  TextSession(const RunSetup& setup,
              JoinedRank& rank,
              const Remedies& remedies,
              const engine::ChoiceOptions& choice,
              engine::Generator::Cache cache);

  /// Generates the texts of this rank. Collective.
  void run(std::span<const engine::TextRequest> requests, engine::TextListener& listener);

 private:
  RankSession session_;
  engine::Generator generator_;
};

}  // namespace dstrain::session
