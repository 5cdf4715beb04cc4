#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/function_ref.h"
#include "runtime/data/token_set.h"

namespace dstrain::data {

/// Where token sets are kept: $DSTRAIN_CACHE, else $XDG_CACHE_HOME/dstrain, else ~/.cache/dstrain.
/// Throws Error{io} when none of the three is set.
std::filesystem::path cache_directory();

/// What the tokens of a file are known by: SHA-256 over `method`, which says how they are made, and
/// over the SHA-256 of each 8 MiB of the content, computed on all compute threads.
std::string token_key(std::span<const std::byte> content, std::string_view method);

/// The token set of this key. If there is none in the directory, or a damaged one, `make(path)`
/// writes it: to a file beside, which is renamed when it is whole. Who wants the same set
/// meanwhile, in any process of any node, waits at a lock (flock) that ends with its owner. Throws
/// Error{io}, and what `make` throws.
TokenSet cached_tokens(const std::filesystem::path& directory,
                       const std::string& key,
                       FunctionRef<void(const std::filesystem::path&)> make);

}  // namespace dstrain::data
