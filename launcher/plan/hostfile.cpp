#include "launcher/plan/hostfile.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <unordered_map>

#include "launcher/plan/host_name.h"
#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/units.h"
#include "runtime/base/utf8.h"
#include "runtime/os/file.h"

namespace dstrain::launcher {
namespace {

constexpr Bytes hostfile_bytes_max = mebibyte;
constexpr std::string_view blanks = " \t\r\v\f";
constexpr std::size_t port_digits_max = 5;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // as some editors begin UTF-8

/// One line being read from left to right; knows its place for messages.
class LineReader {
 public:
  LineReader(std::string_view file, int number, std::string_view line)
      : file_(file), number_(number), line_(line.substr(0, line.find('#'))) {}

  /// The next word, or an empty view at the end of the line.
  std::string_view next() {
    word_start_ = std::min(line_.find_first_not_of(blanks, position_), line_.size());
    position_ = std::min(line_.find_first_of(blanks, word_start_), line_.size());
    return line_.substr(word_start_, position_ - word_start_);
  }

  /// Fails at `offset` characters into the last word.
  template <class... Args>
  [[noreturn]] void refuse(std::size_t offset,
                           fmt::format_string<Args...> format,
                           Args&&... args) const {
    fail(ErrorCode::input, "{}:{}:{}: {}", file_, number_, word_start_ + offset + 1,
         fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  std::string_view file_;
  int number_;
  std::string_view line_;
  std::size_t word_start_ = 0;
  std::size_t position_ = 0;
};

/// Shows at most 80 characters: the file may be hostile.
std::string shown(std::string_view word) {
  return printable(word, 80);
}

bool are_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

int parse_count(const LineReader& line, std::string_view word, std::string_view key) {
  const std::string_view digits = word.substr(key.size());
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const auto parsed = static_cast<std::size_t>(end - digits.data());
  const bool number = error != std::errc::invalid_argument;
  if (number && parsed != digits.size()) {
    line.refuse(key.size() + parsed, "\"{}\" follows the number; write {}{}",
                shown(digits.substr(parsed)), key, shown(digits.substr(0, parsed)));
  }
  if (!number || error != std::errc{} || value < 1 || value > slots_max) {
    const std::string_view name = key.substr(0, key.size() - 1);
    line.refuse(key.size(), "{} must be 1..{}, got \"{}\"", name, slots_max, shown(digits));
  }
  return value;
}

/// "ssh://root@node:22": says where the user and the port belong.
[[noreturn]] void refuse_url(const LineReader& line, std::string_view url) {
  std::string_view name = url.substr(url.find("//") + 2);
  name = name.substr(0, name.find('/'));
  const std::size_t at = name.rfind('@');
  const std::string_view user = at == name.npos ? "" : name.substr(0, at);
  if (at != name.npos) name.remove_prefix(at + 1);
  const std::size_t colon = name.rfind(':');
  const std::string_view port = colon == name.npos ? "" : name.substr(colon + 1);
  if (are_digits(port)) name = name.substr(0, colon);
  const std::string host = shown(without_brackets(name));
  std::string remedy;
  if (!user.empty()) {
    remedy = fmt::format("; put \"User {}\" under \"Host {}\" in ~/.ssh/config", shown(user), host);
  }
  if (are_digits(port)) remedy += fmt::format("; give --ssh_port {}", shown(port));
  line.refuse(0, "a line is \"{} slots=N\"{}", host, remedy);
}

/// Slurm's "node-[1-3]" and a shell's "node-{1..3}".
bool names_several(std::string_view name) {
  const std::size_t open = name.find_first_of("[{");
  return open != name.npos && open > 0 && name.find_first_of("]}", open) != name.npos;
}

/// "user@host" and "host:port": says where the user and the port belong.
[[noreturn]] void refuse_host(const LineReader& line, std::string_view name) {
  if (name.find("://") != name.npos) refuse_url(line, name);
  if (name.starts_with('$')) {
    line.refuse(0, "\"{}\" is not expanded, since no shell reads this file; write the name itself",
                shown(name));
  }
  if (names_several(name)) {
    line.refuse(0, "\"{}\" names several hosts; write a line \"NAME slots=N\" for each of them",
                shown(name));
  }
  const std::size_t at = name.find('@');
  if (at != name.npos && at > 0 && is_host_name(name.substr(at + 1))) {
    const std::string host = shown(name.substr(at + 1));
    line.refuse(0, "a line is \"{} slots=N\"; put \"User {}\" under \"Host {}\" in ~/.ssh/config",
                host, shown(name.substr(0, at)), host);
  }
  const std::size_t colon = name.find(':');
  const std::string_view port = colon == name.npos ? "" : name.substr(colon + 1);
  if (are_digits(port) && is_host_name(name.substr(0, colon))) {
    const std::string host = shown(name.substr(0, colon));
    constexpr std::size_t port_digits_min = 4;  // fewer digits mean slots, as in MPICH, except 22
    if (port.size() < port_digits_min && port != "22") {
      line.refuse(0, "a line is \"{} slots={}\"", host, shown(port));
    }
    line.refuse(
        0,
        "a line is \"{} slots=N\"; give --ssh_port {}, or put \"Port {}\" under \"Host {}\" "
        "in ~/.ssh/config",
        host, shown(port), shown(port), host);
  }
  line.refuse(0, "\"{}\" is not a host name or address; a line is \"NAME slots=N\"", shown(name));
}

/// "slots = 4"
void refuse_blanks(LineReader line, std::string_view word, const std::string& host) {
  constexpr std::string_view key = "slots=";
  constexpr std::size_t digits_max = 4;
  const LineReader place = line;
  std::string joined(word);
  for (auto next = line.next(); !next.empty(); next = line.next()) joined += next;
  const std::string_view digits =
      std::string_view(joined).substr(std::min(key.size(), joined.size()));
  if (!joined.starts_with(key) || !are_digits(digits) || digits.size() > digits_max) return;
  place.refuse(0, "write \"{} {}\", without blanks around the =", host, joined);
}

/// A word that other programs write after a host: says where it belongs, or its name here.
[[noreturn]] void refuse_word(const LineReader& line,
                              std::string_view word,
                              const std::string& host) {
  const std::size_t equals = word.find('=');
  const std::string name = lower_case(equals == word.npos ? "" : word.substr(0, equals));
  const std::string value = shown(word.substr(equals == word.npos ? 0 : equals + 1));
  const bool number = value.size() <= port_digits_max && are_digits(value);
  const auto named = [&](std::initializer_list<std::string_view> names) {
    return !value.empty() && std::ranges::find(names, name) != names.end();
  };
  const std::string in_config = fmt::format("under \"Host {}\" in ~/.ssh/config", host);
  std::string remedy;
  if (number && named({"port", "ssh_port", "ssh-port", "ansible_port", "ansible_ssh_port"})) {
    remedy = fmt::format("; give --ssh_port {}, or put \"Port {}\" {}", value, value, in_config);
  } else if (named({"user", "username", "ssh_user", "ssh-user", "ansible_user"})) {
    remedy = fmt::format("; put \"User {}\" {}", value, in_config);
  } else if (named({"ip", "addr", "address", "hostname", "ansible_host"})) {
    remedy = fmt::format("; put \"HostName {}\" {}", value, in_config);
  }
  // A bare number is MPICH's.
  if (number && !word.starts_with("slots=") && !word.starts_with("max_slots=") &&
      (name.empty() || named({"slot", "slots", "gpu", "gpus", "num_gpus", "ngpus", "np"}))) {
    line.refuse(0, "\"{}\" does not belong here; a line is \"{} slots={}\"", shown(word), host,
                value);
  }
  line.refuse(0, "\"{}\" does not belong here; a line is \"{} slots=N\"{}", shown(word), host,
              remedy);
}

HostEntry parse_line(LineReader& line, std::string_view name) {
  const std::string host(without_brackets(name));
  const bool bracketed = name.starts_with('[') && name.ends_with(']');
  const bool group = bracketed && !(is_host_name(host) && host.find(':') != host.npos);
  if (group) {
    line.refuse(0,
                "\"{}\" begins a group of an Ansible inventory; leave only lines \"NAME slots=N\"",
                shown(name));
  }
  if (!is_host_name(host)) refuse_host(line, name);
  std::optional<int> slots;
  std::optional<int> max_slots;
  for (auto word = line.next(); !word.empty(); word = line.next()) {
    if (word == "slots" || word == "slots=") refuse_blanks(line, word, host);
    if (word.starts_with("slots=") && !slots) {
      slots = parse_count(line, word, "slots=");
    } else if (word.starts_with("max_slots=") && !max_slots) {
      max_slots = parse_count(line, word, "max_slots=");
    } else {
      refuse_word(line, word, host);
    }
    if (slots && max_slots && *slots > *max_slots) {
      line.refuse(0, "slots={} is more than max_slots={} of \"{}\"", *slots, *max_slots, host);
    }
  }
  if (!slots) line.refuse(0, "slots=N is missing; a line is \"{} slots=N\"", host);
  return HostEntry{host, *slots};
}

}  // namespace

std::vector<HostEntry> parse_hostfile(std::string_view text, std::string_view name) {
  std::vector<HostEntry> hosts;
  std::unordered_map<std::string, int> line_of;
  int number = 0;
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    LineReader line(name, ++number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string_view word = line.next();
    if (word.empty()) continue;
    const LineReader place = line;
    HostEntry entry = parse_line(line, word);
    const auto [found, added] = line_of.emplace(entry.host, number);
    if (!added) {
      place.refuse(0, "host \"{}\" was already named in line {}; give all its slots there",
                   entry.host, found->second);
    }
    if (hosts.size() == hosts_max) place.refuse(0, "more than {} hosts", hosts_max);
    hosts.push_back(std::move(entry));
  }
  if (hosts.empty()) {
    fail(ErrorCode::input, "{}: the hostfile names no host; a line is \"NAME slots=N\"", name);
  }
  return hosts;
}

std::vector<HostEntry> read_hostfile(const std::filesystem::path& path) {
  return parse_hostfile(read_text_file(path, hostfile_bytes_max), path.string());
}

}  // namespace dstrain::launcher
