#include "runtime/engine/generator.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::engine {
namespace {

/// Passes between two exchanges of ranks that do not gather parameters.
constexpr int passes_per_exchange = 32;

std::int32_t number(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

}  // namespace

Generator::Generator(Decoder& decoder, const Options& options, comm::ControlGroup& control)
    : decoder_(decoder),
      options_(options),
      control_(control),
      chooser_(options.choice, decoder.model().vocabulary),
      texts_(static_cast<std::size_t>(decoder.options().slots)),
      beams_(static_cast<std::size_t>(options.choice.beam.num_beams)) {
  DSTRAIN_CHECK(texts_.size() % beams_ == 0, "{} slots of {} beams", texts_.size(), beams_);
  if (beams_ == 1) return;
  searches_.assign(texts_.size() / beams_,
                   BeamSearch(options.choice.beam, options.choice.end_tokens, 1));
}

std::int64_t Generator::most_tokens(const Text& text, const TextRequest& request) const {
  return std::min(request.max_new_tokens, decoder_.options().positions - text.given + 1);
}

bool Generator::is_end(std::int32_t token) const {
  const auto& ends = options_.choice.end_tokens;
  return std::ranges::find(ends, token) != ends.end();
}

void Generator::begin_text(Text& text, const TextRequest& request, std::size_t index) {
  const auto& pairs = decoder_.model().pairs;
  const std::span<const std::int32_t> given =
      pairs ? std::span(&pairs->start, 1) : std::span(request.prompt);
  DSTRAIN_CHECK(!request.prompt.empty(), "request {} has no tokens", index);
  std::int64_t kept = 0;
  if (options_.cache == Cache::reused && !pairs && decoder_.model().short_context == 0) {
    // The last token of the prompt has to run, for its logits.
    const auto most = std::min(text.run, std::ssize(given) - 1);
    while (kept < most &&
           text.context[static_cast<std::size_t>(kept)] == given[static_cast<std::size_t>(kept)]) {
      ++kept;
    }
    if (text.run - kept > decoder_.rewind_max()) kept = 0;
  }
  text.index = index;
  text.context.assign(given.begin(), given.end());
  text.context.reserve(
      given.size() +
      static_cast<std::size_t>(std::min(request.max_new_tokens, decoder_.options().positions)) + 1);
  text.given = std::ssize(given);
  text.run = kept;
  text.active = true;
  text.begun = false;
  text.source_count = pairs ? number(std::ssize(request.prompt)) : 0;
  if (searches_.empty()) return;
  searches_[static_cast<std::size_t>(&text - texts_.data()) / beams_] =
      BeamSearch(options_.choice.beam, options_.choice.end_tokens, most_tokens(text, request));
}

Generator::Pass Generator::next_pass() const {
  if (std::ranges::any_of(texts_, &Text::waits)) return Pass::prompt;
  return std::ranges::any_of(texts_, &Text::active) ? Pass::decode : Pass::none;
}

void Generator::take_logits(Text& text,
                            const TextRequest& request,
                            std::span<float> logits,
                            TextListener& listener) {
  if (searches_.empty()) {
    choose(text, request, logits, listener);
  } else {
    search(text, logits, listener);
  }
}

void Generator::search(Text& text, std::span<float> logits, TextListener& listener) {
  const auto slot = static_cast<std::size_t>(&text - texts_.data());
  BeamSearch& search = searches_[slot / beams_];
  chooser_.score(logits, text.context, std::ssize(text.context) - text.given);
  search.add(slot % beams_, logits);
  if (!search.complete()) return;
  const auto beams = std::span(texts_).subspan(slot / beams_ * beams_, beams_);
  if (search.advance() == BeamSearch::State::grows) return place_beams(beams, search);
  end_search(beams, search, listener);
}

void Generator::place_beams(std::span<Text> beams, const BeamSearch& search) {
  copies_.clear();
  for (const BeamSearch::Copy& copy : search.copies()) {
    const Text& from = beams[copy.from];
    Text& to = beams[copy.to];
    const auto first = number(beams.data() - texts_.data());
    copies_.push_back({.from = first + number(static_cast<std::int64_t>(copy.from)),
                       .to = first + number(static_cast<std::int64_t>(copy.to)),
                       .past = from.run,
                       .source = to.active ? 0 : from.source_count});
    to = from;
  }
  decoder_.copy(copies_);
  for (std::size_t place = 0; place < beams.size(); ++place) {
    beams[place].context.push_back(search.tokens(place).back());
  }
}

void Generator::end_search(std::span<Text> beams,
                           const BeamSearch& search,
                           TextListener& listener) {
  std::size_t index = beams.front().index * search.texts().size();
  for (Text& beam : beams) beam.active = false;
  for (const BeamSearch::Text& found : search.texts()) {
    for (const std::int32_t token : found.tokens) listener.add(index, token);
    listener.end(index, is_end(found.tokens.back()) ? FinishReason::eos : FinishReason::length);
    ++index;
  }
}

void Generator::choose(Text& text,
                       const TextRequest& request,
                       std::span<float> logits,
                       TextListener& listener) {
  const std::int64_t news = std::ssize(text.context) - text.given;
  const std::int32_t token = chooser_.choose(logits, text.context, news, request.variant);
  text.context.push_back(token);
  const bool stops = listener.add(text.index, token) == TextListener::Answer::ends;
  std::optional<FinishReason> reason;
  if (news + 1 >= most_tokens(text, request)) reason = FinishReason::length;
  if (stops) reason = FinishReason::stop;
  if (is_end(token)) reason = FinishReason::eos;
  if (!reason) return;
  text.active = false;
  listener.end(text.index, *reason);
}

void Generator::run_prompt(Text& text,
                           std::span<const TextRequest> requests,
                           TextListener& listener) {
  const TextRequest& request = requests[text.index];
  const auto total = std::ssize(text.context);
  const auto count = std::min(total - text.run, decoder_.options().chunk);
  const std::int32_t slot = number(&text - texts_.data());
  const std::int32_t past = number(text.run);
  const std::int32_t length = number(total);
  const bool pairs = decoder_.model().pairs.has_value();
  const HostView logits = decoder_.run(
      {.tokens = std::span(text.context)
                     .subspan(static_cast<std::size_t>(text.run), static_cast<std::size_t>(count)),
       .slot = {&slot, 1},
       .past = {&past, 1},
       .length = {&length, 1},
       .source = pairs ? std::span(request.prompt) : std::span<const std::int32_t>(),
       .source_count = {&text.source_count, pairs ? std::size_t{1} : 0}});
  text.run += count;
  if (text.run < total) return;
  text.begun = true;
  take_logits(text, request, logits.as<float>(), listener);
}

void Generator::run_decode(std::span<const TextRequest> requests, TextListener& listener) {
  for (auto* const values : {&tokens_, &slots_, &past_, &lengths_, &source_counts_}) {
    values->clear();
  }
  const bool pairs = decoder_.model().pairs.has_value();
  for (std::size_t slot = 0; slot < texts_.size(); ++slot) {
    Text& text = texts_[slot];
    if (!text.active) continue;
    tokens_.push_back(text.context.back());
    slots_.push_back(static_cast<std::int32_t>(slot));
    past_.push_back(number(text.run));
    lengths_.push_back(number(text.run + 1));
    if (pairs) source_counts_.push_back(text.source_count);
  }
  const HostView logits = decoder_.run({.tokens = tokens_,
                                        .slot = slots_,
                                        .past = past_,
                                        .length = lengths_,
                                        .source_count = source_counts_});
  const auto vocabulary = static_cast<std::size_t>(decoder_.model().vocabulary);
  for (std::size_t row = 0; row < slots_.size(); ++row) {
    Text& text = texts_[static_cast<std::size_t>(slots_[row])];
    ++text.run;
    take_logits(text, requests[text.index],
                logits.as<float>().subspan(row * vocabulary, vocabulary), listener);
  }
}

void Generator::prepare(std::span<const TextRequest> requests) {
  for (std::size_t slot = 0; slot < texts_.size(); slot += beams_) {
    Text& text = texts_[slot];
    if (text.active) continue;
    if (next_ == requests.size()) break;
    begin_text(text, requests[next_], next_);
    ++next_;
  }
  // Where a longer sequence turns all its keys by other angles, they are computed anew.
  const std::int64_t most = decoder_.model().short_context;
  for (Text& text : texts_) {
    if (most == 0 || !text.active || !text.begun || text.run != most) continue;
    text.run = 0;
    text.begun = false;
  }
}

void Generator::run_pass(Pass pass, std::span<const TextRequest> requests, TextListener& listener) {
  if (pass == Pass::decode) return run_decode(requests, listener);
  run_prompt(*std::ranges::find_if(texts_, &Text::waits), requests, listener);
}

namespace {

/// What a rank tells the others: the pass that it makes next, and its outbox.
std::vector<std::string> tell(comm::ControlGroup& control, char pass, std::string outbox) {
  if (control.size() == 1) return {pass + std::move(outbox)};
  return control.gather_texts(pass + std::move(outbox));
}

}  // namespace

void Generator::run_shared(Pass own,
                           bool prompts,
                           std::span<const TextRequest> requests,
                           TextListener& listener) {
  // A pass with an encoder gathers its parameters too, so that other ranks wait for it.
  const bool encodes = prompts && decoder_.model().pairs.has_value();
  if (own == Pass::none || (encodes && own != Pass::prompt)) {
    decoder_.pass(encodes ? Decoder::Sources::some : Decoder::Sources::none);
  } else {
    run_pass(own, requests, listener);
  }
}

void Generator::run(std::span<const TextRequest> requests, TextListener& listener) {
  next_ = 0;
  const int passes = control_.size() == 1 ? 1 : passes_per_exchange;
  for (;;) {
    prepare(requests);
    const Pass own = next_pass();
    const std::vector<std::string> told = tell(control_, static_cast<char>(own), listener.outbox());
    bool prompts = false;
    bool any = false;
    for (std::size_t rank = 0; rank < told.size(); ++rank) {
      const auto pass = static_cast<Pass>(told[rank].front());
      prompts = prompts || pass == Pass::prompt;
      any = any || pass != Pass::none;
      listener.inbox(static_cast<int>(rank), std::string_view(told[rank]).substr(1));
    }
    if (!any) return;
    if (options_.gathers) {
      run_shared(own, prompts, requests, listener);
      continue;
    }
    for (int pass = 0; pass < passes && next_pass() != Pass::none; ++pass) {
      run_pass(next_pass(), requests, listener);
      prepare(requests);
    }
  }
}

}  // namespace dstrain::engine
