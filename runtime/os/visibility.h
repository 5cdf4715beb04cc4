#pragma once
#include <filesystem>

#include "runtime/base/function_ref.h"

namespace dstrain {

/// How long to wait until a host sees files of another one: NFS and Lustre cache attributes and
/// names for up to a minute.
inline constexpr double visible_seconds = 90;

/// Calls `is_there` until it returns true, for at most `seconds`; returns its last result. Opens
/// `directory`, which holds the names, in between, so that NFS asks the server for them.
bool await_visible(const std::filesystem::path& directory,
                   double seconds,
                   FunctionRef<bool()> is_there);

/// Waits a little, then opens `directory` as above.
void look_again(const std::filesystem::path& directory);

}  // namespace dstrain
