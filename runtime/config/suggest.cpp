#include "runtime/config/suggest.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace dstrain::config {
namespace {

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

/// Whether one of the two is the other with parts before or behind it. A single short part, as
/// "lr", says too little.
bool holds(std::string_view longer, std::string_view shorter) {
  constexpr std::size_t telling = 6;
  if (shorter.size() < telling || longer.size() <= shorter.size()) return false;
  const std::size_t rest = longer.size() - shorter.size();
  const bool begins = longer.starts_with(shorter) && longer[shorter.size()] == '_';
  const bool ends = longer.ends_with(shorter) && longer[rest - 1] == '_';
  return begins || ends;
}

std::string_view longest_related(std::string_view wanted, std::span<const std::string_view> known) {
  std::string_view best;
  for (const std::string_view candidate : known) {
    const std::string own = folded(candidate);
    if ((holds(wanted, own) || holds(own, wanted)) && candidate.size() > best.size()) {
      best = candidate;
    }
  }
  return best;
}

}  // namespace

std::string suggest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t longest_word = 100;  // nobody misspells a longer one
  if (word.size() > longest_word) return {};
  const std::string wanted = folded(word);
  std::string_view best;
  std::size_t best_distance = longest_word;
  for (const std::string_view candidate : known) {
    const std::size_t length = std::max(word.size(), candidate.size());
    const std::size_t limit = std::max(std::min<std::size_t>(2, length / 3), length / 7);
    const std::size_t distance = edit_distance(wanted, folded(candidate));
    if (distance <= limit && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best.empty() ? longest_related(wanted, known) : best);
}

}  // namespace dstrain::config
