#pragma once
#include <vector>

#include "launcher/hosts/relay.h"

namespace dstrain::launcher {

/// The body of the relay's process: opens a link to each host, passes bytes both ways between it
/// and the socket of the same index until either ends, and tells on `events_fd` why a link has
/// ended: packets of a std::size_t index and a text. Does not return.
[[noreturn]] void run_relay_process(const Relay::Settings& settings,
                                    std::vector<UniqueFd> launcher_ends,
                                    int events_fd);

}  // namespace dstrain::launcher
