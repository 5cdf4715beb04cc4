#pragma once
#include <bitset>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// Which characters may be adjacent in a match of a regular expression, however it backtracks. Uses
/// Glushkov's construction (V. M. Glushkov, The abstract theory of automata, 1961), with look-ahead
/// as one more branch.
struct RegexShape {
  static constexpr std::size_t atoms_max = 128;
  /// A set of indices of `atoms`.
  using Atoms = std::bitset<atoms_max>;

  /// The parts that match one character, each as a PCRE2 expression.
  std::vector<std::string> atoms;
  /// For each atom, the atoms that may match the next character.
  std::vector<Atoms> next;
  Atoms first;  ///< may match the first character of a match
  Atoms last;   ///< may match the last character
  Atoms alone;  ///< match a character that is a whole match, in any context
};

/// Returns the shape of an expression that PCRE2 accepts. Nothing if matches may depend on the text
/// before (`^`, look-behind) or on the end (`$`), if a match may be empty, or if the syntax is not
/// supported here.
std::optional<RegexShape> regex_shape(std::string_view pattern);

}  // namespace dstrain::tokenizer
