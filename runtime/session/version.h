#pragma once
#include <string_view>

#include "runtime/base/error.h"

namespace dstrain::session {

/// Of libdstrain_core.so, "0.1.0".
const char* version();

/// The remedy in the messages below.
inline constexpr const char* one_version =
    "install one version on this host, or pass --copy_binary to copy the launcher's to other hosts";

/// Throws Error{config} if `program`, of this version, has found a libdstrain_core.so of another.
/// Compiled into the program.
inline void require_core(std::string_view program, std::string_view own) {
  if (own == version()) return;
  fail(ErrorCode::config, "{} is version {}, and the libdstrain_core.so that it found is {}; {}",
       program, own, version(), one_version);
}

/// Throws Error{config} if a dstrain of another version has started this rank.
void require_launcher(std::string_view program, std::string_view own);

}  // namespace dstrain::session
