#include "launcher/plan/host_name.h"

#include <algorithm>
#include <array>

#include <arpa/inet.h>

namespace dstrain::launcher {
namespace {

constexpr std::size_t name_length_max = 253;  // RFC 1035

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_address(int family, std::string_view name) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(family, std::string(name).c_str(), bytes.data()) == 1;
}

/// RFC 4343: names ignore case.
bool is_same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, {}, lower, lower);
}

}  // namespace

bool is_host_name(std::string_view name) {
  if (name.empty() || name.size() > name_length_max || name.find('\0') != name.npos) return false;
  if (name.find(':') != name.npos) return is_address(AF_INET6, name);
  return is_word(name.front()) && std::all_of(name.begin(), name.end(), [](char c) {
           return is_word(c) || c == '.' || c == '-';
         });
}

std::string_view without_brackets(std::string_view name) {
  if (name.size() >= 2 && name.front() == '[' && name.back() == ']') {
    name.remove_prefix(1);
    name.remove_suffix(1);
  }
  return name;
}

bool is_this_machine(std::string_view name, std::string_view this_host) {
  if (is_same_name(name, "localhost") || name == "::1") return true;
  if (name.starts_with("127.") && is_address(AF_INET, name)) return true;
  const std::string_view without_domain = this_host.substr(0, this_host.find('.'));
  return !name.empty() && (is_same_name(name, this_host) || is_same_name(name, without_domain));
}

}  // namespace dstrain::launcher
