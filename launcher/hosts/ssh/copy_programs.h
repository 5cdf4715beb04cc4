#pragma once
#include <string>

#include "launcher/hosts/binary_bundle.h"
#include "launcher/hosts/ssh/connection.h"

namespace dstrain::launcher {

/// Puts the programs into ${XDG_CACHE_HOME:-~/.cache}/dstrain/NAME/bin on the host, unless they are
/// there, and returns the path of dstrain. They appear all at once or not at all, checked by size
/// and checksum. Does not copy the system's libraries. Throws Error{remote}.
std::string copy_programs(const SshConnection& connection,
                          const BinaryBundle& bundle,
                          const ConnectTimeout& timeout);

}  // namespace dstrain::launcher
