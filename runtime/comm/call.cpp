#include "runtime/comm/call.h"

#include <array>

#include <fmt/format.h>

namespace dstrain::comm {
namespace {

constexpr std::array<const char*, 13> operation_names{
    "nothing",   "join", "all_gather", "reduce_scatter", "all_reduce", "all_to_all",
    "broadcast", "send", "receive",    "split",          "gather",     "gather of texts",
    "barrier"};

constexpr std::array<const char*, 7> dtype_names{"f32", "f16", "bf16", "i32", "i64", "u8", "u16"};

/// The words that join an operation to its peer; empty where it has none.
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

std::string to_string(const Call& call) {
  std::string text = operation_names.at(static_cast<std::size_t>(call.operation));
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
  text +=
      fmt::format(" of {} {}", call.numel, dtype_names.at(static_cast<std::size_t>(call.dtype)));
  const std::string words = peer_words(call.operation);
  return words.empty() ? text : text + words + std::to_string(call.peer);
}

}  // namespace dstrain::comm
