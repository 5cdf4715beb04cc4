#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "tests/tidy/rules.h"

namespace dstrain::tidy {
namespace {

/// Which folders each folder may include beside itself and runtime/base. "runtime" and "launcher"
/// stand for every folder below them.
const std::map<std::string, std::set<std::string>, std::less<>>& arrows() {
  static const std::map<std::string, std::set<std::string>, std::less<>> table{
      {"runtime/base", {}},
      {"runtime/os", {}},
      {"runtime/rank", {"runtime/os"}},
      {"runtime/numeric", {}},
      {"runtime/rules", {}},
      {"runtime/device", {"runtime/numeric"}},
      {"runtime/tensor", {"runtime/device"}},
      {"runtime/ops", {"runtime/tensor", "runtime/device", "runtime/rules", "runtime/numeric"}},
      {"runtime/comm",
       {"runtime/ops", "runtime/tensor", "runtime/device", "runtime/rank", "runtime/os"}},
      {"runtime/backend",
       {"runtime/comm", "runtime/ops", "runtime/device", "runtime/rank", "runtime/os"}},
      {"runtime/safetensors", {"runtime/tensor", "runtime/device", "runtime/os"}},
      {"runtime/model",
       {"runtime/safetensors", "runtime/ops", "runtime/tensor", "runtime/device", "runtime/numeric",
        "runtime/os"}},
      {"runtime/checkpoint",
       {"runtime/model", "runtime/safetensors", "runtime/tensor", "runtime/os"}},
      {"runtime/tokenizer", {"runtime/os"}},
      {"runtime/data", {"runtime/tokenizer", "runtime/numeric", "runtime/os"}},
      {"runtime/preprocess", {"runtime/data", "runtime/tokenizer", "runtime/os"}},
      {"runtime/config", {"runtime/tensor", "runtime/rules", "runtime/rank", "runtime/os"}},
      {"runtime/optim",
       {"runtime/config", "runtime/ops", "runtime/tensor", "runtime/device", "runtime/rules"}},
      {"runtime/monitor", {"runtime/device", "runtime/os"}},
      {"runtime/profile", {"runtime/device", "runtime/os"}},
      {"runtime/engine",
       {"runtime/profile", "runtime/optim", "runtime/config", "runtime/data", "runtime/checkpoint",
        "runtime/model", "runtime/comm", "runtime/ops", "runtime/tensor", "runtime/device",
        "runtime/numeric", "runtime/rank", "runtime/os"}},
      {"offload",
       {"runtime/profile", "runtime/tensor", "runtime/device", "runtime/numeric", "runtime/rank",
        "runtime/os"}},
      {"zero",
       {"offload", "runtime/engine", "runtime/profile", "runtime/optim", "runtime/config",
        "runtime/model", "runtime/comm", "runtime/ops", "runtime/tensor", "runtime/device",
        "runtime/numeric"}},
      {"runtime/session",
       {"zero", "offload", "runtime/engine", "runtime/backend", "runtime/profile",
        "runtime/monitor", "runtime/optim", "runtime/config", "runtime/data", "runtime/checkpoint",
        "runtime/model", "runtime/comm", "runtime/ops", "runtime/tensor", "runtime/device",
        "runtime/numeric", "runtime/rank", "runtime/os"}},
      {"launcher/process", {"runtime/rank", "runtime/os"}},
      {"launcher/protocol", {"launcher/process", "runtime/rank", "runtime/os"}},
      {"launcher/plan",
       {"launcher/protocol", "launcher/process", "runtime/config", "runtime/rank", "runtime/os"}},
      {"launcher/agent",
       {"launcher/plan", "launcher/protocol", "launcher/process", "runtime/rank", "runtime/os"}},
      {"launcher/doctor", {"launcher/plan", "launcher/process", "runtime/rank", "runtime/os"}},
      {"launcher/hosts",
       {"launcher/plan", "launcher/protocol", "launcher/process", "runtime/rank", "runtime/os"}},
      {"launcher/job",
       {"launcher/hosts", "launcher/doctor", "launcher/plan", "launcher/protocol",
        "launcher/process", "runtime/rank", "runtime/os"}},
      {"cmd", {"launcher", "zero", "offload", "runtime"}},
      {"examples", {"launcher", "zero", "offload", "runtime"}},
      {"tests", {"examples", "cmd", "launcher", "zero", "offload", "runtime"}},
  };
  return table;
}

/// Folders whose folders have arrows of their own.
constexpr std::array<std::string_view, 2> divided{"runtime", "launcher"};

/// "runtime/os/file.h" belongs to "runtime/base", "zero/partition.h" to "zero".
std::string folder_of(std::string_view path) {
  const std::size_t first = path.find('/');
  if (first == std::string_view::npos) return {};
  const bool is_divided = std::ranges::find(divided, path.substr(0, first)) != divided.end();
  const std::size_t second = is_divided ? path.find('/', first + 1) : path.npos;
  const std::size_t end = second != path.npos ? second : first;
  return std::string(path.substr(0, end));
}

struct Include {
  std::string name;
  bool quoted = false;
  int line = 0;
};

std::vector<Include> includes_of(const SourceFile& file) {
  std::vector<Include> found;
  constexpr std::string_view directive = "#include ";
  for (std::size_t at = file.code.find(directive); at != std::string::npos;
       at = file.code.find(directive, at + 1)) {
    if (at > 0 && file.code[at - 1] != '\n') continue;
    const std::size_t open = at + directive.size();
    if (open >= file.code.size()) continue;
    const bool quoted = file.code[open] == '"';
    const std::size_t close = file.code.find(quoted ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    found.push_back({file.code.substr(open + 1, close - open - 1), quoted, line_of(file.code, at)});
  }
  return found;
}

bool may_include(const std::set<std::string>& allowed,
                 const std::string& from,
                 const std::string& folder) {
  if (folder == from || folder == "runtime/base") return true;
  const std::string whole = folder.substr(0, folder.find('/'));
  return allowed.contains(folder) || allowed.contains(whole);
}

bool exists(const std::vector<SourceFile>& tree, const std::string& path) {
  return std::any_of(tree.begin(), tree.end(),
                     [&](const SourceFile& file) { return file.path == path; });
}

}  // namespace

Problems check_includes(const SourceFile& file, const std::vector<SourceFile>& tree) {
  Problems problems;
  if (!file.is_cpp()) return problems;
  const std::string from = folder_of(file.path);
  const auto allowed = arrows().find(from);
  if (allowed == arrows().end()) {
    return {fmt::format("{}:1: folder \"{}\" has no row in the table of include arrows", file.path,
                        from)};
  }
  for (const Include& include : includes_of(file)) {
    if (!include.quoted) continue;
    // Of a project of its own, whose includes start where its sources lie.
    const std::string project = "examples/library";
    if (file.in(project) && exists(tree, project + "/" + include.name)) continue;
    const std::string to = folder_of(include.name);
    if (!exists(tree, include.name)) {
      problems.push_back(fmt::format("{}:{}: no file \"{}\"; includes start at the root", file.path,
                                     include.line, include.name));
    } else if (!may_include(allowed->second, from, to)) {
      problems.push_back(
          fmt::format("{}:{}: {} may not include {}", file.path, include.line, from, to));
    }
  }
  return problems;
}

Problems check_host_access(const SourceFile& file) {
  constexpr std::array<std::string_view, 4> ways_in{
      "runtime/device/cpu_stream_access.h", "runtime/ops/elements.h",
      "runtime/tensor/device_access.h", "runtime/tensor/host_access.h"};
  if (file.in("runtime/device") || file.in("runtime/ops") || file.in("tests") ||
      file.in("runtime/comm/nccl") || file.path == "runtime/comm/host_communicator.cpp") {
    return {};
  }
  Problems problems;
  for (const Include& include : includes_of(file)) {
    if (std::ranges::find(ways_in, include.name) == ways_in.end()) continue;
    problems.push_back(fmt::format("{}:{}: \"{}\" is for the CPU's ops and collectives: use an op",
                                   file.path, include.line, include.name));
  }
  return problems;
}

Problems check_vendor_headers(const SourceFile& file) {
  constexpr std::array<std::string_view, 5> vendor{"cuda", "cublas", "nccl", "mpi", "nvml"};
  constexpr std::array<std::string_view, 4> plug_ins{"/cuda/", "/nccl/", "/mpi/", "/stand_in/"};
  constexpr std::array<std::string_view, 4> heavy{"nlohmann/json.hpp", "CLI/", "catch2/",
                                                  "spdlog/"};
  const bool in_plug_in = std::any_of(
      plug_ins.begin(), plug_ins.end(),
      [&](std::string_view folder) { return file.path.find(folder) != std::string::npos; });
  Problems problems;
  for (const Include& include : includes_of(file)) {
    const auto begins = [&](std::string_view start) {
      return include.name.starts_with(start);
    };
    if (!include.quoted && !in_plug_in && std::any_of(vendor.begin(), vendor.end(), begins)) {
      problems.push_back(fmt::format("{}:{}: <{}> outside the folder of its plug-in", file.path,
                                     include.line, include.name));
    }
    // A chat template reads a conversation as JSON, which it therefore holds by value.
    const bool is_light =
        file.is_header() && !file.in("tests") && file.path != "runtime/data/conversation.h";
    if (is_light && std::any_of(heavy.begin(), heavy.end(), begins)) {
      problems.push_back(fmt::format("{}:{}: <{}> is too heavy for a header", file.path,
                                     include.line, include.name));
    }
  }
  return problems;
}

Problems check_pragma_once(const SourceFile& file) {
  if (!file.is_header() || file.text.starts_with("#pragma once\n")) return {};
  return {fmt::format("{}:1: a header begins with #pragma once", file.path)};
}

}  // namespace dstrain::tidy
