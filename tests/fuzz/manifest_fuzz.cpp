// manifest.json, as it is and sealed anew: else nearly every input would fail at the checksum and
// reach no other rule. What is accepted is written as it was read.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/manifest_text.h"
#include "tests/fuzz/target.h"

using namespace dstrain;

namespace {

std::string sealed_anew(std::string text) {
  text.resize(std::min(text.rfind("\"checksum\":"), text.size()));
  const checkpoint::Checksum checksum = checkpoint::checksum_of(std::as_bytes(std::span(text)));
  return fmt::format("{}\"checksum\":\"{:016x}\"}}\n", text, checksum);
}

void check(const std::string& text) {
  const std::string again = checkpoint::to_text(checkpoint::parse_manifest(text, "input"));
  DSTRAIN_CHECK(again == text, "{}", again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = fuzz::as_text(data, size);
  fuzz::refuse_or_accept([&] { check(text); });
  return fuzz::refuse_or_accept([&] { check(sealed_anew(text)); });
}
