#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/jinja/value.h"

/// What Python's `str` does to text, for texts in UTF-8. Positions are those of bytes unless a name
/// says `characters`.
namespace dstrain::jinja {

/// The number of characters.
std::size_t length(std::string_view text);
/// The byte at which character `index` begins; the size of the text if there are fewer.
std::size_t byte_of(std::string_view text, std::size_t index);

bool is_space(std::string_view character);
/// The size of the character at the beginning or the end of a text that is not empty.
std::size_t first_size(std::string_view text);
std::size_t last_size(std::string_view text);

/// The characters, each as a text without a mark as safe.
std::vector<Text> characters(const Text& text);
/// The character at `index`, which exists.
Text character(const Text& text, std::size_t index);
/// Characters `from` (inclusive) to `to` (exclusive) in steps of `step`, which may be negative.
Text sliced(const Text& text, std::int64_t from, std::int64_t to, std::int64_t step);

enum class Ends { both, left, right };
/// str.strip and its kin; `characters` empty: white space.
Text strip(const Text& text, std::string_view characters, Ends ends);
/// str.split and rsplit at `separator`, which is not empty, at most `most` times if that is not
/// negative.
std::vector<Text> split(const Text& text, std::string_view separator, std::int64_t most);
std::vector<Text> split_right(const Text& text, std::string_view separator, std::int64_t most);
/// str.split() and rsplit() at white space.
std::vector<Text> split_words(const Text& text, std::int64_t most);
std::vector<Text> split_words_right(const Text& text, std::int64_t most);
std::vector<Text> split_lines(const Text& text, bool keep_ends);
/// str.replace, at most `most` times if that is not negative.
Text replace(const Text& text, const Text& old, const Text& fresh, std::int64_t most);

/// str.upper and lower by the tables of the C library. Throw TemplateError for the characters whose
/// upper case is several characters, but for the German sharp s.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
/// str.capitalize and str.title.
std::string capitalize(std::string_view text);
std::string title(std::string_view text);

/// str.isalpha and its kin: "alpha", "digit", "alnum", "space", "upper", "lower", "numeric",
/// "decimal", "title", "ascii". Throws TemplateError for other characters than ASCII, except for
/// space and ascii.
bool consists_of(std::string_view text, std::string_view kind);

/// Whether repr writes the character itself.
bool is_printable(char32_t code);

/// Escapes &, <, >, " and ' as HTML does.
std::string escape_html(std::string_view text);

}  // namespace dstrain::jinja
