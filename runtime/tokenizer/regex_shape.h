#pragma once
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// Which characters may stand beside each other in what a regular expression reads, however it
/// backtracks: Glushkov's construction (V. M. Glushkov, The abstract theory of automata, 1961),
/// with what look-ahead reads as one more branch.
struct RegexShape {
  static constexpr std::size_t atoms_max = 128;
  /// By the place in `atoms`.
  using Atoms = std::bitset<atoms_max>;

  /// The parts that read one character, as expressions of PCRE2 by themselves.
  std::vector<std::string> atoms;
  /// Of each atom those which may read the next character.
  std::vector<Atoms> next;
  Atoms first;  ///< may read the first character of a match
  Atoms last;   ///< and the last one
  Atoms alone;  ///< read a character that is a match by itself, whatever follows it
};

/// The shape of an expression that PCRE2 accepts. Nothing where what is matched may depend on what
/// was read before (`^`, look-behind), on the end (`$`), where a match may be empty, or where the
/// syntax is not known here.
std::optional<RegexShape> regex_shape(std::string_view pattern);

}  // namespace dstrain::tokenizer
