#include "launcher/doctor/host_messages.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launcher/doctor/texts.h"
#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/rank/rank_control.h"

namespace dstrain::launcher::doctor {
namespace {

using nlohmann::json;

constexpr std::array kinds{"time",   "machine",   "check",     "finding",
                           "looked", "listening", "unreached", "tried"};

HostSays::Kind kind_of(const std::string& name) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (name == kinds[i]) return static_cast<HostSays::Kind>(i);
  }
  fail(ErrorCode::remote, "doctor: a host sent the unknown message \"{}\"", name);
}

}  // namespace

std::string encode_says(const HostSays& says) {
  json line{{"kind", kinds.at(static_cast<std::size_t>(says.kind))}};
  switch (says.kind) {
    case HostSays::Kind::time:
      line["time"] = says.time;
      break;
    case HostSays::Kind::machine:
      line["processor"] = says.machine.processor;
      line["instructions"] = says.machine.instructions;
      line["cores"] = says.machine.cores;
      line["memory"] = says.machine.memory;
      break;
    case HostSays::Kind::finding:
      line["check"] = says.finding.check;
      line["level"] = name_of(says.finding.level);
      line["what"] = says.finding.what;
      line["fix"] = says.finding.fix;
      break;
    default:
      line["text"] = says.text;
      line["number"] = says.number;
      line["peer"] = says.peer;
      line["nonce"] = says.nonce;
  }
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

HostSays decode_says(std::string_view text) {
  try {
    const json line = json::parse(text);
    HostSays says;
    says.kind = kind_of(line.at("kind"));
    says.time = line.value("time", 0.0);
    says.machine = {line.value("processor", ""), line.value("instructions", ""),
                    line.value("cores", 0), line.value("memory", Bytes{0})};
    says.text = line.value("text", "");
    if (says.kind == HostSays::Kind::finding) {
      says.finding = {line.at("check"), level_of(line.at("level")), line.at("what"),
                      line.at("fix")};
    }
    says.number = line.value("number", 0);
    says.peer = line.value("peer", "");
    says.nonce = line.value("nonce", "");
    return says;
  } catch (const json::exception&) {
    fail(ErrorCode::remote, "its dstrain doctor printed \"{}\"", text.substr(0, 200));
  }
}

std::vector<std::string> encode_reach(const std::vector<Peer>& peers) {
  std::vector<std::string> messages;
  for (const Peer& peer : peers) {
    const std::string line =
        fmt::format("\n{} {} {} {}", peer.host, peer.address, peer.port, peer.nonce);
    if (messages.empty() || messages.back().size() + line.size() > control_message_bytes_max) {
      messages.emplace_back("reach");
    }
    messages.back() += line;
  }
  return messages;
}

std::vector<Peer> decode_reach(std::string_view message) {
  std::vector<Peer> peers;
  const std::vector<std::string> lines = lines_of(message);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> words = words_of(lines[i]);
    const auto port = words.size() == 4 ? parse_number<int>(words[2]) : std::nullopt;
    if (!port) fail(ErrorCode::remote, "doctor: \"{}\" does not describe a peer", lines[i]);
    peers.push_back({words[0], words[1], *port, words[3]});
  }
  return peers;
}

}  // namespace dstrain::launcher::doctor
