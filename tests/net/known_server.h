#pragma once
#include <optional>

namespace dstrain::test {

/// What libssh is to say of a host's key instead of what it finds; a value of ssh_known_hosts_e.
/// Linked into a program, known_server.cpp stands before libssh's function of that purpose.
enum class KnownServer : int { changed = 2, other = 3 };

/// From now on; none: what it finds.
void say_of_servers(std::optional<KnownServer> answer);

}  // namespace dstrain::test
