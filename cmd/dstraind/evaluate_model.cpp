#include "cmd/dstraind/evaluate_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "runtime/base/error.h"
#include "runtime/base/label.h"
#include "runtime/base/log.h"
#include "runtime/monitor/eval_results.h"
#include "runtime/monitor/progress_line.h"
#include "runtime/session/rank_session.h"

namespace dstrain::cmd {
namespace {

/// The directory may be that of a training run, whose metrics.jsonl stays as it is.
void report(const monitor::EvalResults& results, const std::string& directory) {
  fmt::print("{}\n", monitor::describe_held_out(results.loss));
  std::fflush(stdout);
  monitor::write_eval_results(directory, results);
}

/// Logs how far an evaluation is, on rank 0.
class ProgressLog {
 public:
  ProgressLog(session::JoinedRank& rank, std::int64_t samples)
      : rank_(rank), samples_(samples), begin_(rank.clock().now_seconds()), told_(begin_) {}

  /// `done` samples are evaluated, of all ranks.
  void tell(std::int64_t done) {
    constexpr double seconds_between = 10;
    const double now = rank_.clock().now_seconds();
    if (rank_.worker().rank != 0 || done >= samples_ || now - told_ < seconds_between) return;
    told_ = now;
    log_info(monitor::to_text(
        monitor::EvaluationProgress{.samples = done, .of = samples_, .seconds = now - begin_}));
  }
  [[nodiscard]] double seconds() const { return rank_.clock().now_seconds() - begin_; }

 private:
  session::JoinedRank& rank_;
  std::int64_t samples_;
  double begin_;
  double told_;
};

/// The likelihoods of choices. Each is a batch of one sequence. Longer ones come first, so that an
/// engine, whose frame has one length, serves for many. At each step the ranks take neighbors, and
/// all have the same length.
class ChoiceRun {
 public:
  ChoiceRun(const TrainSetup& setup, session::RankSession& session)
      : setup_(setup),
        session_(session),
        sequences_(setup.data.questions->sequences()),
        order_(sequences_.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    const auto size_of = [&](std::size_t index) {
      return std::pair(std::ssize(sequences_[index].source), std::ssize(sequences_[index].tokens));
    };
    std::ranges::stable_sort(order_, std::greater<>(), size_of);
  }

  /// Returns them by sequence.
  std::vector<double> run(ProgressLog& progress) {
    const auto ranks = static_cast<std::size_t>(session_.control_group().size());
    const auto rank = static_cast<std::size_t>(session_.control_group().rank());
    std::vector<double> own;
    for (std::size_t first = 0; first < order_.size(); first += ranks) {
      const std::size_t count = std::min(ranks, order_.size() - first);
      const auto step = std::span(order_).subspan(first, count);
      own.push_back(-loss_of(rank < count ? &sequences_[step[rank]] : nullptr, shape_of(step)));
      progress.tell(static_cast<std::int64_t>(first + count));
    }
    return gathered(own);
  }

 private:
  [[nodiscard]] model::BatchShape shape_of(std::span<const std::size_t> step) const {
    const config::DataSettings& data = setup_.settings.data;
    model::BatchShape shape{1, 0, 0};
    for (const std::size_t index : step) {
      shape.tokens = std::max(shape.tokens, std::ssize(sequences_[index].tokens));
      shape.source = std::max(shape.source, std::ssize(sequences_[index].source));
    }
    shape.tokens = session::padded_length(shape.tokens, data.block_size);
    shape.source = session::padded_length(shape.source, data.source_length);
    return shape;
  }

  /// Null: this rank has none, but takes part. Collective.
  double loss_of(const data::ChoiceSequence* sequence, const model::BatchShape& shape) {
    if (!engine_ || shape.tokens != shape_.tokens || shape.source != shape_.source) {
      engine::Engine::Options options = setup_.memory.engine;
      options.shape = shape;
      options.inference_shape = shape;
      engine_.emplace(session_.engine_inputs(), options, session_.streams());
      shape_ = shape;
    }
    data::SampleBuffer buffer(1, {.tokens = shape.tokens, .source = shape.source});
    const data::SampleRows row = buffer.rows();
    data::fill_empty(row);
    if (sequence != nullptr) {
      std::ranges::copy(sequence->tokens, row.tokens.begin());
      std::ranges::copy(sequence->labels, row.labels.begin());
      std::ranges::copy(sequence->source, row.source.begin());
      if (shape.source > 0) {
        row.source_count[0] = static_cast<std::int32_t>(sequence->source.size());
      }
    }
    return engine_->evaluate(engine::micro_batch(row, 0));
  }

  /// Rank r has what stands at r, N + r, 2N + r of the order.
  std::vector<double> gathered(const std::vector<double>& own) {
    const std::string_view bytes(reinterpret_cast<const char*>(own.data()),
                                 own.size() * sizeof(double));
    const std::vector<std::string> ranks = session_.control_group().gather_texts(bytes);
    std::vector<double> all(order_.size());
    for (std::size_t at = 0; at < order_.size(); ++at) {
      const std::string& values = ranks[at % ranks.size()];
      std::memcpy(&all[order_[at]], values.data() + at / ranks.size() * sizeof(double),
                  sizeof(double));
    }
    return all;
  }

  const TrainSetup& setup_;
  session::RankSession& session_;
  const std::vector<data::ChoiceSequence>& sequences_;
  std::vector<std::size_t> order_;
  std::optional<engine::Engine> engine_;  ///< of `shape_`
  model::BatchShape shape_;
};

void check_likelihoods(const std::vector<double>& likelihoods) {
  const auto bad = std::ranges::find_if(likelihoods, [](double x) { return !std::isfinite(x); });
  if (bad == likelihoods.end()) return;
  fail(ErrorCode::diverged,
       "the likelihood of a choice is {}: the weights are too large, or no numbers",
       std::abs(*bad));
}

}  // namespace

Evaluated<engine::Losses> measure_losses(const TrainSetup& setup,
                                         session::JoinedRank& rank,
                                         std::span<const std::int32_t> text_bytes) {
  const config::TrainSettings& settings = setup.settings;
  const WorkerEnv& worker = rank.worker();
  const session::Remedies remedies = remedies_for(setup);
  session::RankSession session(session::session_inputs(setup, rank, remedies));
  rank.progress().enter(RunPhase::loading);
  session.store().load({*setup.initial_parameters}, session.streams().compute);
  const data::EvaluationLoader loader(
      *setup.data.validation_data, {settings.evaluation.batch_size, worker.rank, worker.world_size},
      setup.data.validation_samples);
  rank.progress().enter(RunPhase::evaluating);
  ProgressLog progress(rank, setup.data.validation_samples.count);
  const std::int64_t each = settings.evaluation.batch_size * worker.world_size;
  const engine::Losses losses =
      engine::add_all_losses(session.engine(), loader, session.control_group(),
                             {.text_bytes = text_bytes, .progress = [&](std::int64_t done) {
                                progress.tell(done * each);
                              }});
  return {losses, progress.seconds()};
}

Evaluated<data::ChoiceScores> measure_choices(const TrainSetup& setup, session::JoinedRank& rank) {
  const session::Remedies remedies = remedies_for(setup);
  session::RankSession::Inputs inputs = session::session_inputs(setup, rank, remedies);
  inputs.has_engine = false;
  session::RankSession session(inputs);
  rank.progress().enter(RunPhase::loading);
  session.store().load({*setup.initial_parameters}, session.streams().compute);
  rank.progress().enter(RunPhase::evaluating);
  ProgressLog progress(rank, std::ssize(setup.data.questions->sequences()));
  const std::vector<double> likelihoods = ChoiceRun(setup, session).run(progress);
  check_likelihoods(likelihoods);
  return {data::score(*setup.data.questions, likelihoods), progress.seconds()};
}

int evaluate_model(const TrainSetup& setup, session::JoinedRank& rank) {
  const auto [losses, seconds] = measure_losses(setup, rank, {});
  if (rank.worker().rank == 0) {
    report({.loss = losses.sum / static_cast<double>(losses.labels),
            .samples = setup.data.validation_samples.count,
            .seconds = seconds},
           setup.settings.output.directory);
  }
  rank.control_group().barrier();
  return status::done;
}

}  // namespace dstrain::cmd
