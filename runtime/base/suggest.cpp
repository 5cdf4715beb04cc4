#include "runtime/base/suggest.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

namespace dstrain {
namespace {

constexpr std::size_t longest_word = 100;  // nobody misspells a longer one

std::string folded(std::string_view word) {
  std::string result;
  for (const char c : word) {
    result += c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// Damerau-Levenshtein distance (optimal string alignment), two rows of history.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + cost});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(now);
  }
  return last[b.size()];
}

/// How closely one of the two is the other with parts behind it, or else before it; 0: it is not. A
/// single short part, as "lr", says too little.
int relation(std::string_view one, std::string_view other) {
  constexpr std::size_t telling = 6;
  const auto [shorter, longer] =
      one.size() < other.size() ? std::pair(one, other) : std::pair(other, one);
  if (shorter.size() < telling || longer.size() == shorter.size()) return 0;
  if (longer.starts_with(shorter) && longer[shorter.size()] == '_') return 2;
  const char before = longer[longer.size() - shorter.size() - 1];
  return longer.ends_with(shorter) && before == '_' ? 1 : 0;
}

std::vector<std::string> parts_of(const std::string& word) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= word.size();) {
    const std::size_t end = std::min(word.find('_', begin), word.size());
    if (end > begin) parts.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool has_part(const std::vector<std::string>& parts, std::span<const std::string_view> words) {
  return std::ranges::any_of(parts, [&](const std::string& part) {
    return std::ranges::find(words, part) != words.end();
  });
}

/// What a name says beside its subject.
struct Sense {
  bool negative = false;
  bool trains = false;
  bool held_out = false;
};

constexpr std::array<std::string_view, 6> negations{"no",       "not",  "disable",
                                                    "disabled", "skip", "without"};
constexpr std::array<std::string_view, 2> training{"train", "training"};
constexpr std::array<std::string_view, 7> evaluation{"eval", "evaluation", "valid", "validation",
                                                     "val",  "dev",        "test"};

Sense sense_of(const std::string& folded_word) {
  const std::vector<std::string> parts = parts_of(folded_word);
  return {has_part(parts, negations), has_part(parts, training), has_part(parts, evaluation)};
}

/// Whether nobody who typed `wanted` meant `own`, however near it is; both are folded. A word
/// without dashes may have its negation in one part with the rest: "noshuffle".
bool means_otherwise(const std::string& wanted, const std::string& own) {
  const Sense asked = sense_of(wanted);
  const Sense found = sense_of(own);
  if (asked.negative != found.negative && !(found.negative && wanted.find("no") < 3)) return true;
  // What names neither is for training, or for both.
  if (asked.held_out && !found.held_out) return true;
  return asked.trains && !asked.held_out && found.held_out;
}

/// Of those that are as close the one with the most in common, and the least besides.
std::string_view most_related(std::string_view wanted, std::span<const std::string_view> known) {
  const auto rank = [&](std::string_view candidate) {
    const std::string own = folded(candidate);
    const auto [least, most] = std::minmax({own.size(), wanted.size()});
    return std::tuple(relation(own, wanted), least, -static_cast<std::int64_t>(most));
  };
  std::vector<std::string_view> candidates;
  for (const std::string_view word : known) {
    if (!means_otherwise(std::string(wanted), folded(word))) candidates.push_back(word);
  }
  if (candidates.empty()) return {};
  const std::string_view best = *std::ranges::max_element(candidates, {}, rank);
  return relation(folded(best), wanted) > 0 ? best : std::string_view{};
}

}  // namespace

std::string suggest_spelling(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > longest_word) return {};
  const std::string wanted = folded(word);
  std::string_view best;
  std::size_t best_distance = longest_word;
  for (const std::string_view candidate : known) {
    const std::size_t length = std::max(word.size(), candidate.size());
    const std::size_t limit = std::max(std::min<std::size_t>(2, length / 3), length / 7);
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    if (means_otherwise(wanted, folded(candidate))) continue;
    if (distance <= limit && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string suggest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > longest_word) return {};
  std::string best = suggest_spelling(word, known);
  return best.empty() ? std::string(most_related(folded(word), known)) : best;
}

std::string with_plain_dashes(std::string_view word) {
  constexpr std::array<std::string_view, 5> dashes{"\u2010", "\u2011", "\u2013", "\u2014",
                                                   "\u2212"};
  bool typographic = false;
  const auto next = [&]() -> std::size_t {
    if (word.starts_with('-')) return 1;
    const auto* const dash =
        std::ranges::find_if(dashes, [&](std::string_view one) { return word.starts_with(one); });
    if (dash == dashes.end()) return 0;
    typographic = true;
    return dash->size();
  };
  while (const std::size_t size = next()) word.remove_prefix(size);
  const bool named = !word.empty() && std::isalpha(static_cast<unsigned char>(word.front())) != 0 &&
                     word.substr(0, word.find('=')).find(' ') == std::string_view::npos;
  if (!typographic || !named) return {};
  const bool letter = word.size() == 1;
  return std::string(letter ? "-" : "--").append(word);
}

bool names_held_out_file(std::string_view word) {
  constexpr std::array<std::string_view, 6> files{"file", "files",   "data",
                                                  "path", "dataset", "set"};
  const std::string own = folded(word);
  return sense_of(own).held_out && has_part(parts_of(own), files);
}

}  // namespace dstrain
