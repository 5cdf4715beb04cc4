#include "runtime/engine/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

/// Candidates per beam of a step. In the worst case every end token is among the best of each beam,
/// and as many beams must go on nevertheless.
std::int64_t candidates_per_beam(std::size_t end_tokens) {
  return static_cast<std::int64_t>(end_tokens) + 1;
}

}  // namespace

BeamSearch::BeamSearch(const BeamOptions& options,
                       std::vector<std::int32_t> end_tokens,
                       std::int64_t max_new_tokens)
    : options_(options),
      end_tokens_(std::move(end_tokens)),
      max_new_tokens_(max_new_tokens),
      candidates_max_(
          static_cast<std::size_t>(options.num_beams * candidates_per_beam(end_tokens_.size()))),
      beams_(static_cast<std::size_t>(options.num_beams)) {
  DSTRAIN_CHECK(options.num_return_sequences >= 1 &&
                    options.num_return_sequences <= options.num_beams && max_new_tokens > 0,
                "{} texts of {} beams and {} tokens", options.num_return_sequences,
                options.num_beams, max_new_tokens);
}

std::int64_t BeamSearch::beams_max(std::int64_t vocabulary, std::size_t end_tokens) {
  return vocabulary / candidates_per_beam(end_tokens);
}

bool BeamSearch::is_better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.place != b.place ? a.place < b.place : a.token < b.token;
}

void BeamSearch::add(std::size_t place, std::span<const float> scores) {
  DSTRAIN_CHECK(place < beams_.size() && std::ssize(scores) >= std::ssize(beams_), "place {}",
                place);
  const float before = beams_[place].score;
  for (std::size_t token = 0; token < scores.size(); ++token) {
    const float score = before + scores[token];
    const bool full = candidates_.size() == candidates_max_;
    if (full && score < candidates_.front().score) continue;
    const Candidate candidate{score, place, static_cast<std::int32_t>(token)};
    if (full) {
      if (!is_better(candidate, candidates_.front())) continue;
      std::ranges::pop_heap(candidates_, is_better);
      candidates_.back() = candidate;
    } else {
      candidates_.push_back(candidate);
    }
    std::ranges::push_heap(candidates_, is_better);
  }
  ++added_;
}

bool BeamSearch::ends(const Candidate& candidate) const {
  return new_tokens_ == max_new_tokens_ ||
         std::ranges::find(end_tokens_, candidate.token) != end_tokens_.end();
}

float BeamSearch::with_penalty(float score, std::int64_t length) const {
  const double divisor = std::pow(static_cast<double>(length), options_.length_penalty);
  return score / static_cast<float>(divisor);
}

/// A continuation that ends is a text only if it is among the num_beams best.
void BeamSearch::take_texts() {
  const std::size_t best = std::min(candidates_.size(), beams_.size());
  for (const Candidate& candidate : std::span(candidates_).first(best)) {
    if (!ends(candidate)) continue;
    Text& text = texts_.emplace_back(
        Text{beams_[candidate.place].tokens, with_penalty(candidate.score, new_tokens_)});
    text.tokens.push_back(candidate.token);
  }
  std::ranges::stable_sort(texts_, std::ranges::greater(), &Text::score);
  if (texts_.size() > beams_.size()) texts_.resize(beams_.size());
}

void BeamSearch::take_beams() {
  std::vector<std::optional<Candidate>> placed(beams_.size());
  std::vector<Candidate> others;
  std::size_t count = 0;
  for (const Candidate& candidate : candidates_) {
    if (ends(candidate)) continue;
    if (count++ == beams_.size()) break;
    if (placed[candidate.place]) {
      others.push_back(candidate);
    } else {
      placed[candidate.place] = candidate;
    }
  }
  DSTRAIN_CHECK(count >= beams_.size(), "{} of {} beams go on", count, beams_.size());
  for (const Candidate& candidate : others) {
    const auto is_free = [](const auto& at) {
      return !at.has_value();
    };
    const auto free = std::ranges::find_if(placed, is_free);
    const auto to = static_cast<std::size_t>(free - placed.begin());
    *free = candidate;
    copies_.push_back({candidate.place, to});
    beams_[to].tokens = beams_[candidate.place].tokens;
  }
  for (std::size_t place = 0; place < beams_.size(); ++place) {
    beams_[place].tokens.push_back(placed[place]->token);
    beams_[place].score = placed[place]->score;
  }
}

BeamSearch::State BeamSearch::state() const {
  if (texts_.size() < beams_.size()) return State::grows;
  if (options_.early_stopping == EarlyStopping::yes) return State::ended;
  const bool looks_ahead =
      options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  const float best = std::ranges::max(beams_, {}, &Text::score).score;
  const float reachable = with_penalty(best, looks_ahead ? max_new_tokens_ : new_tokens_);
  return reachable > texts_.back().score ? State::grows : State::ended;
}

BeamSearch::State BeamSearch::advance() {
  DSTRAIN_CHECK(complete(), "{} of {} beams have scores", added_, beams_.size());
  ++new_tokens_;
  std::ranges::sort(candidates_, is_better);
  copies_.clear();
  take_texts();
  const bool last = new_tokens_ == max_new_tokens_;
  if (!last) take_beams();
  candidates_.clear();
  added_ = 0;
  return last ? State::ended : state();
}

std::span<const BeamSearch::Text> BeamSearch::texts() const {
  return std::span(texts_).first(static_cast<std::size_t>(options_.num_return_sequences));
}

}  // namespace dstrain::engine
