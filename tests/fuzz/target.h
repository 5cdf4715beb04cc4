#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/base/error.h"

/// What each target defines, as libFuzzer wants it: gives the bytes to a parser.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace dstrain::fuzz {

inline std::string as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs a parser. It may refuse its input; all else that it throws, Error{internal} included, goes
/// on and ends the process.
template <class Parse>
int refuse_or_accept(Parse&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
  }
  return 0;
}

}  // namespace dstrain::fuzz
