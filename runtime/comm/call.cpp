#include "runtime/comm/call.h"

#include <array>

#include <fmt/format.h>

namespace dstrain::comm {
namespace {

constexpr std::array<const char*, 13> operation_names{
    "nothing",   "join", "all_gather", "reduce_scatter", "all_reduce", "all_to_all",
    "broadcast", "send", "receive",    "split",          "gather",     "gather of texts",
    "barrier"};

/// The words that join an operation to its peer; empty if it has none.
const char* peer_words(Operation operation) {
  switch (operation) {
    case Operation::broadcast:
    case Operation::receive:
      return " from rank ";
    case Operation::send:
      return " to rank ";
    default:
      return "";
  }
}

}  // namespace

const char* name_of(Operation operation) {
  return operation_names.at(static_cast<std::size_t>(operation));
}

std::string to_string(const Call& call) {
  std::string text = name_of(call.operation);
  switch (call.operation) {
    case Operation::none:
    case Operation::join:
    case Operation::split:
    case Operation::gather_texts:
    case Operation::barrier:
      return text;
    default:
      break;
  }
  text += fmt::format(" of {} {}", call.numel, name_of(call.dtype));
  const std::string words = peer_words(call.operation);
  return words.empty() ? text : text + words + std::to_string(call.peer);
}

}  // namespace dstrain::comm
