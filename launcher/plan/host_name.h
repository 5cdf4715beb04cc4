#pragma once
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// Whether `name` can name a host: letters, digits, '_', '.' and '-', not starting with '-' or '.';
/// or an IPv6 address without brackets. Such a name can never be taken for an option.
bool is_host_name(std::string_view name);

/// "[::1]" -> "::1"; anything else unchanged.
std::string_view without_brackets(std::string_view name);

/// Whether `name` is localhost, a loopback address, or `this_host` (with or without its domain), in
/// any case. Asks no name server.
bool is_this_machine(std::string_view name, std::string_view this_host);

}  // namespace dstrain::launcher
