#pragma once
#include <filesystem>

#include "runtime/base/function_ref.h"

namespace dstrain {

/// How long what one host has written is waited for on another: NFS and Lustre keep attributes and
/// names for up to a minute.
inline constexpr double visible_seconds = 90;

/// Asks `is_there` until it says so, for at most `seconds`; returns what it said last. `directory`
/// is where the names are, which is opened in between: NFS then asks the server for them.
bool await_visible(const std::filesystem::path& directory,
                   double seconds,
                   FunctionRef<bool()> is_there);

/// Lets some time pass, then looks into `directory` as above.
void look_again(const std::filesystem::path& directory);

}  // namespace dstrain
