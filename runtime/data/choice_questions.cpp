#include "runtime/data/choice_questions.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "runtime/base/error.h"
#include "runtime/base/label.h"
#include "runtime/data/foreign_format.h"
#include "runtime/data/jinja/python_text.h"
#include "runtime/data/json_record.h"
#include "runtime/data/record_reader.h"
#include "runtime/os/mapped_file.h"

namespace dstrain::data {
namespace {

/// Returns how many bytes of a text are before the white space at its end.
std::size_t without_spaces(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = jinja::last_size(text);
    if (!jinja::is_space(text.substr(text.size() - last))) break;
    text.remove_suffix(last);
  }
  return text.size();
}

/// Makes the sequences of one question.
class ChoiceEncoder {
 public:
  ChoiceEncoder(const TextEncoder& encoder, const ChoiceOptions& options)
      : encoder_(encoder), options_(options) {}

  struct Encoded {
    ChoiceSequence sequence;
    bool shortened = false;
  };
  /// Throws Error{input}, which begins with `place`.
  [[nodiscard]] Encoded encode(const ChoiceRecord& record,
                               std::size_t choice,
                               const std::string& place) const {
    const std::size_t cut = without_spaces(record.query);
    const std::string query = record.query.substr(0, cut);
    const std::string rest = record.query.substr(cut) + record.choices[choice];
    const std::string name = fmt::format("{}: choices[{}]", place, choice);
    Encoded encoded =
        options_.pair_tokens ? encode_pair(query, rest, name) : encode_text(query, rest, name);
    const ChoiceSequence& made = encoded.sequence;
    for (const auto* const ids : {&made.tokens, &made.labels, &made.source}) {
      check_ids(*ids, name);
    }
    return encoded;
  }

 private:
  [[nodiscard]] Encoded encode_text(const std::string& query,
                                    const std::string& choice,
                                    const std::string& name) const {
    std::vector<std::int32_t> whole = encoder_.beginning();
    const std::size_t before = whole.size() + encoder_.encode(query).size();
    append(encoder_.encode(query + choice), whole);
    if (before == 0) {
      whole.insert(whole.begin(), first_token(name));
    }
    const std::size_t context = std::max<std::size_t>(before, 1);
    if (whole.size() <= context) {
      fail(ErrorCode::input, "{}: adds no token to those of its query", name);
    }
    const std::size_t labels = whole.size() - context;
    check_length(labels, name);
    const auto most = static_cast<std::size_t>(options_.tokens_max) + 1;
    const bool shortened = whole.size() > most;
    if (shortened) whole.erase(whole.begin(), whole.end() - static_cast<std::ptrdiff_t>(most));
    ChoiceSequence sequence{.tokens = {whole.begin(), whole.end() - 1},
                            .labels = {whole.begin() + 1, whole.end()},
                            .source = {}};
    std::fill(sequence.labels.begin(), sequence.labels.end() - static_cast<std::ptrdiff_t>(labels),
              ignored_label);
    return {std::move(sequence), shortened};
  }

  [[nodiscard]] Encoded encode_pair(const std::string& query,
                                    const std::string& choice,
                                    const std::string& name) const {
    ChoiceSequence sequence;
    sequence.source = encoder_.beginning();
    append(encoder_.encode(query), sequence.source);
    append(encoder_.ending(), sequence.source);
    sequence.labels = encoder_.encode(choice);
    if (sequence.source.empty() || sequence.labels.empty()) {
      fail(ErrorCode::input, "{}: {} has no token", name,
           sequence.labels.empty() ? "it" : "its query");
    }
    check_length(sequence.labels.size(), name);
    sequence.tokens = {options_.pair_tokens->start};
    append(std::span(sequence.labels).first(sequence.labels.size() - 1), sequence.tokens);
    const auto most = static_cast<std::ptrdiff_t>(options_.sources_max);
    const bool shortened = std::ssize(sequence.source) > most;
    if (shortened) sequence.source.erase(sequence.source.begin(), sequence.source.end() - most);
    return {std::move(sequence), shortened};
  }

  static void append(std::span<const std::int32_t> ids, std::vector<std::int32_t>& to) {
    to.insert(to.end(), ids.begin(), ids.end());
  }

  /// Stands before a choice that has no query.
  [[nodiscard]] std::int32_t first_token(const std::string& name) const {
    const std::optional<std::int32_t> first =
        encoder_.begin_of_text() ? encoder_.begin_of_text() : encoder_.end_of_text();
    if (first) return *first;
    fail(ErrorCode::input,
         "{}: its query is empty, and the tokenizer has no token that begins or ends a text", name);
  }

  void check_length(std::size_t labels, const std::string& name) const {
    if (static_cast<std::int64_t>(labels) <= options_.tokens_max) return;
    fail(ErrorCode::input, "{}: has {} tokens; the longest sequence has {}", name, labels,
         options_.tokens_max);
  }

  void check_ids(const std::vector<std::int32_t>& ids, const std::string& name) const {
    const auto unknown =
        std::ranges::find_if(ids, [&](std::int32_t id) { return id >= options_.vocabulary; });
    if (unknown == ids.end()) return;
    fail(ErrorCode::input, "{}: token {} is not below the model's vocabulary of {}", name, *unknown,
         options_.vocabulary);
  }

  const TextEncoder& encoder_;
  const ChoiceOptions& options_;
};

}  // namespace

ChoiceQuestions::ChoiceQuestions(const std::string& path,
                                 const TextEncoder& encoder,
                                 const ChoiceOptions& options)
    : path_(path) {
  const MappedFile file(path);
  digest_ = checksum_of(file.bytes());
  const ChoiceEncoder choices(encoder, options);
  RecordReader reader(file.text(), path);
  for (auto record = reader.next(); record; record = reader.next()) {
    const ChoiceRecord parsed = parse_choices(*record, path);
    Question question{.choice_bytes = {}, .gold = parsed.gold, .first_sequence = sequences_.size()};
    for (std::size_t choice = 0; choice < parsed.choices.size(); ++choice) {
      auto [sequence, shortened] = choices.encode(parsed, choice, place_of(*record, path));
      sequences_.push_back(std::move(sequence));
      shortened_ += shortened ? 1 : 0;
      question.choice_bytes.push_back(std::ssize(parsed.choices[choice]));
    }
    questions_.push_back(std::move(question));
  }
  if (questions_.empty()) fail(ErrorCode::input, "{}: holds no question", path);
}

bool holds_questions(const std::string& path) {
  if (!is_json_name(path)) return false;
  try {
    return holds_choices(MappedFile(path).text());
  } catch (const Error&) {
    return false;  // whoever reads it says why
  }
}

ChoiceScores score(const ChoiceQuestions& questions, const std::vector<double>& log_likelihoods) {
  ChoiceScores scores;
  for (const ChoiceQuestions::Question& question : questions.questions()) {
    std::size_t best = 0;
    std::size_t best_per_byte = 0;
    const auto likelihood = [&](std::size_t choice) {
      return log_likelihoods.at(question.first_sequence + choice);
    };
    const auto per_byte = [&](std::size_t choice) {
      return likelihood(choice) / static_cast<double>(question.choice_bytes[choice]);
    };
    for (std::size_t choice = 1; choice < question.choice_bytes.size(); ++choice) {
      if (likelihood(choice) > likelihood(best)) best = choice;
      if (per_byte(choice) > per_byte(best_per_byte)) best_per_byte = choice;
    }
    scores.right += best == question.gold ? 1 : 0;
    scores.right_per_byte += best_per_byte == question.gold ? 1 : 0;
  }
  return scores;
}

}  // namespace dstrain::data
