#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/utf8.h"
#include "runtime/config/json_value.h"
#include "runtime/config/schema.h"

namespace dstrain::config {

// The words of a configuration are matched only here, once, when the file is read. Case is ignored:
// "CPU" and "cpu" are the same choice. All later code compares with the canonical word.

/// Returns the element of `words` that equals `word` in any case; empty if there is none.
std::string_view spelled_word(std::string_view word, std::span<const std::string_view> words);

/// Returns the canonical words that a key allows; empty: any text.
std::vector<std::string_view> words_of(const Key& key);

/// Returns the element of words_of(key), or "auto", that `word` spells; empty if there is none.
std::string_view canonical_word(const Key& key, std::string_view word);

/// Replaces other spellings by the canonical word. Warns of spellings that DeepSpeed does not know;
/// leaves unknown words alone. `path` is as the file spells it.
void resolve_word(const Key& key, JsonValue& value, const std::string& path, Problems& problems);

}  // namespace dstrain::config
