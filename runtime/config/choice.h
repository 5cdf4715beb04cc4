#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/utf8.h"
#include "runtime/config/json_value.h"
#include "runtime/config/schema.h"

namespace dstrain::config {

// The words of a configuration are matched here and nowhere else, once, when the file is read:
// without case, so that "CPU" and "cpu" are one choice. Whoever comes after compares with the
// canonical word.

/// The one of `words` that `word` spells, in any case; empty when it spells none.
std::string_view spelled_word(std::string_view word, std::span<const std::string_view> words);

/// The words that a key may have, as they are written canonically; empty: any text.
std::vector<std::string_view> words_of(const Key& key);

/// The one of words_of(key), or "auto", that `word` spells; empty when it spells none.
std::string_view canonical_word(const Key& key, std::string_view word);

/// Puts the canonical word in the place of its other spellings. One that DeepSpeed does not know
/// gets a warning; what spells none stays as it is. `path` is as the file spells it.
void resolve_word(const Key& key, JsonValue& value, const std::string& path, Problems& problems);

}  // namespace dstrain::config
