#pragma once
#include <algorithm>
#include <memory>
#include <optional>

#include <dstrain/dstrain.h>

#include "runtime/base/error.h"
#include "runtime/config/ds_config.h"
#include "runtime/engine/name_collective.h"
#include "runtime/session/joined_rank.h"
#include "runtime/session/stop_signals.h"
#include "runtime/session/training_session.h"

namespace dstrain {

class DSTRAIN_INTERNAL Rank::Impl {
 public:
  Impl();

  session::StopSignals signals;  ///< before any thread is started
  ProgressPage progress = ProgressPage::from_environment();
  session::JoinedRank joined;
  Bytes planned = 0;         ///< device memory of the engines
  std::int64_t engines = 0;  ///< made so far

  /// Calls `action`; an error of a collective gets the name of what it belongs to.
  template <class Action>
  auto named(const Action& action) {
    try {
      return action();
    } catch (const Error& error) {
      throw engine::name_collective(error, progress);
    }
  }

  /// Whether any rank asks for something in this call, which all make.
  bool any(session::Call call, bool asked) {
    return named([&] {
      const auto all =
          session::meet(joined.control_group(), {.call = call, .asked = asked ? 1 : 0});
      return std::ranges::any_of(all, [](const session::Share& share) { return share.asked != 0; });
    });
  }
};

class DSTRAIN_INTERNAL Config::Impl {
 public:
  config::DsConfig config;
};

class DSTRAIN_INTERNAL Model::Impl {
 public:
  config::ModelSettings settings;
  session::MakeModel make;
  std::int64_t vocabulary = 0;
  std::int64_t hidden = 0;
};

class DSTRAIN_INTERNAL Engine::Impl {
 public:
  Impl(Rank::Impl& of, const session::TrainingSession::Inputs& inputs)
      : rank(of), session(inputs), planned(session.plan().total()) {
    rank.planned += planned;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  Impl(Impl&&) = delete;
  Impl& operator=(Impl&&) = delete;
  ~Impl() { rank.planned -= planned; }

  /// Calls `action` of the session, unless parameters are gathered.
  template <class Action>
  auto call(const Action& action) {
    if (gathered) {
      fail(ErrorCode::usage, "parameters are gathered: release() them before any other call");
    }
    return rank.named([&] { return action(session); });
  }

  Rank::Impl& rank;
  session::TrainingSession session;
  Bytes planned;
  bool gathered = false;
};

}  // namespace dstrain
