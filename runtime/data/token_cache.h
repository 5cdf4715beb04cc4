#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/function_ref.h"
#include "runtime/data/token_set.h"

namespace dstrain::data {

/// Returns the directory of token sets: $DSTRAIN_CACHE, else $XDG_CACHE_HOME/dstrain, else
/// ~/.cache/dstrain. Throws Error{io} if none of the three is set.
std::filesystem::path cache_directory();

/// Returns the key of a file's tokens: SHA-256 over `method`, which says how they are made, and
/// over the SHA-256 of each 8 MiB of the content, computed on all compute threads.
std::string token_key(std::span<const std::byte> content, std::string_view method);

/// Returns the token set of this key. If the directory has none, or a damaged one, `make(path)`
/// writes it to a temporary file, which is renamed once it is complete. Other processes on any node
/// that want the same set wait at a lock (flock), which ends with its owner. Throws Error{io}, and
/// the exceptions of `make`.
TokenSet cached_tokens(const std::filesystem::path& directory,
                       const std::string& key,
                       FunctionRef<void(const std::filesystem::path&)> make);

}  // namespace dstrain::data
