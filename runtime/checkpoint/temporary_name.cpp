#include "runtime/checkpoint/temporary_name.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>

#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/machine_identity.h"

namespace dstrain::checkpoint {
namespace {

constexpr std::string_view mark = ".tmp-";
constexpr int attempts_max = 1000;

bool is_host_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '.' ||
         c == '-';
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  std::string host(name.data());
  std::ranges::replace_if(
      host, [](char c) { return !is_host_character(c); }, '_');
  return host;
}

std::string half_of_boot_id() {
  constexpr std::size_t digits = 16;
  std::string id = boot_id();
  std::erase(id, '-');
  return id.substr(0, digits);
}

/// Removes the last "-" and the text after it from `text`, and returns that text.
std::optional<std::string_view> take_last(std::string_view& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view last = text.substr(dash + 1);
  text = text.substr(0, dash);
  return last;
}

template <class Number>
bool take_last(std::string_view& text, Number& number) {
  const auto digits = take_last(text);
  if (!digits) return false;
  const auto [end, error] =
      std::from_chars(digits->data(), digits->data() + digits->size(), number);
  return error == std::errc() && end == digits->data() + digits->size() && number >= 0;
}

}  // namespace

Owner this_owner() {
  return {host_name(), half_of_boot_id(), this_process()};
}

std::string temporary_name(std::int64_t step, const Owner& owner, int attempt) {
  return fmt::format("{}{}{}-{}-{}-{}-{}-{}", directory_name(step), mark, owner.host, owner.boot,
                     owner.process.pid_namespace, owner.process.pid, owner.process.start_ticks,
                     attempt);
}

std::optional<Owner> owner_of(std::string_view name) {
  const std::size_t at = name.find(mark);
  if (at == std::string_view::npos || !step_of(name.substr(0, at))) return std::nullopt;
  std::string_view rest = name.substr(at + mark.size());
  Owner owner;
  int attempt = 0;
  ProcessIdentity& process = owner.process;
  if (!take_last(rest, attempt) || !take_last(rest, process.start_ticks) ||
      !take_last(rest, process.pid) || !take_last(rest, process.pid_namespace)) {
    return std::nullopt;
  }
  const auto boot = take_last(rest);
  if (!boot) return std::nullopt;
  owner.boot = *boot;
  owner.host = rest;
  return owner;
}

bool has_ended(const Owner& owner) {
  const Owner own = this_owner();
  if (owner.host != own.host || owner.boot.empty() || own.boot.empty()) return false;
  return owner.boot != own.boot || dstrain::has_ended(owner.process);
}

std::optional<std::filesystem::path> move_aside(const std::filesystem::path& output,
                                                const std::filesystem::path& directory,
                                                std::int64_t step) {
  const Owner owner = this_owner();
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    std::filesystem::path aside = output / temporary_name(step, owner, attempt);
    if (::rename(directory.c_str(), aside.c_str()) == 0) return aside;
    if (errno == EXDEV) return std::nullopt;
    if (errno != ENOTEMPTY && errno != EEXIST) break;
  }
  fail_errno(errno, "rename " + directory.string());
}

void remove_in_place(const std::filesystem::path& directory) {
  const std::filesystem::path manifest = directory / manifest_name;
  if (::unlink(manifest.c_str()) == 0) {
    flush_directory(directory);
  } else if (errno != ENOENT && errno != ENOTDIR) {
    fail_errno(errno, "remove " + manifest.string());
  }
  std::error_code error;
  std::filesystem::remove_all(directory, error);
  if (error) fail_errno(error.value(), "remove " + directory.string());
}

}  // namespace dstrain::checkpoint
