#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/manifest_format.h"
#include "runtime/checkpoint/manifest_scanner.h"

namespace dstrain::checkpoint {
namespace {

/// The text before its checksum, which must be right.
std::string_view unsealed(std::string_view text, const std::string& path) {
  const std::size_t seal_bytes = format::sealed(0).size();
  if (text.size() < seal_bytes) {
    fail(ErrorCode::input, "{}: damaged: its {} bytes are too few for a manifest", path,
         text.size());
  }
  const std::string_view body = text.substr(0, text.size() - seal_bytes);
  const std::string expected = format::sealed(checksum_of(std::as_bytes(std::span(body))));
  if (!text.ends_with(expected)) {
    std::string found(text.substr(body.size()));
    std::ranges::replace_if(
        found, [](char c) { return c < ' ' || c > '~'; }, ' ');
    fail(ErrorCode::input, "{}: damaged: its {} bytes should end with {}, but with {}", path,
         text.size(), expected.substr(0, expected.size() - 1), found);
  }
  return body;
}

class Parser {
 public:
  Parser(std::string_view body, const std::string& path) : scanner_(body, path) {}

  Manifest manifest() {
    Manifest manifest;
    scanner_.expect(format::head);
    if (const std::int64_t version = scanner_.number(); version != format::version) {
      scanner_.refuse(fmt::format("version {} of the format; this program reads version {}",
                                  version, format::version));
    }
    scanner_.expect(",\"program\":");
    manifest.program = scanner_.word();
    if (manifest.program.empty()) scanner_.refuse("the program has no name");
    scanner_.expect(",\n\"step\":");
    manifest.step = scanner_.number();
    scanner_.expect(",\"world_size\":");
    manifest.world_size = small_number();
    scanner_.expect(",\"chunk_bytes\":");
    if (scanner_.number() != chunk_bytes) {
      scanner_.refuse(fmt::format("chunk_bytes must be {}", chunk_bytes));
    }
    scanner_.expect(",\n");
    scanner_.list("\"states\":[", "\n", [&] { manifest.states.push_back(state()); });
    scanner_.expect(",\n");
    scanner_.list("\"tensors\":[", "\n", [&] { manifest.tensors.push_back(tensor()); });
    scanner_.expect(",\n");
    scanner_.list("\"files\":[", "\n", [&] { manifest.files.push_back(file()); });
    scanner_.expect(",\n");
    scanner_.expect_end();
    return manifest;
  }

 private:
  int small_number() {
    const std::int64_t value = scanner_.number();
    if (value > std::numeric_limits<int>::max()) scanner_.refuse("the number is too large");
    return static_cast<int>(value);
  }

  StateRecord state() {
    StateRecord state;
    scanner_.expect("{\"name\":");
    state.name = scanner_.word();
    scanner_.expect(",\"dtype\":");
    state.dtype = scanner_.pass("\"BF16\"") ? DType::bf16 : DType::f32;
    if (state.dtype == DType::f32) scanner_.expect("\"F32\"");
    scanner_.expect(",\"file\":");
    state.file = scanner_.word();
    scanner_.expect("}");
    return state;
  }

  TensorRecord tensor() {
    TensorRecord tensor;
    scanner_.expect("{\"name\":");
    tensor.name = scanner_.word();
    std::vector<std::int64_t> extents;
    scanner_.list(",\"shape\":[", "", [&] {
      if (extents.size() == Shape::rank_max) {
        scanner_.refuse(fmt::format("a shape has at most {} extents", Shape::rank_max));
      }
      extents.push_back(scanner_.number());
    });
    tensor.shape = Shape(extents);
    scanner_.list(",\"slices\":[", "", [&] { tensor.slices.push_back(slice()); });
    scanner_.expect("}");
    return tensor;
  }

  Slice slice() {
    Slice slice;
    scanner_.expect("[");
    slice.rank = small_number();
    scanner_.expect(",");
    slice.begin = scanner_.number();
    scanner_.expect(",");
    slice.end = scanner_.number();
    scanner_.expect("]");
    return slice;
  }

  FileRecord file() {
    FileRecord file;
    scanner_.expect("{\"path\":");
    file.path = scanner_.word();
    scanner_.expect(",\"bytes\":");
    file.bytes = scanner_.number();
    scanner_.expect(",\"chunks\":");
    file.chunks = checksums(scanner_.word());
    scanner_.expect("}");
    return file;
  }

  std::vector<Checksum> checksums(std::string_view digits) const {
    constexpr std::size_t width = 16;
    if (digits.size() % width != 0) scanner_.refuse("each chunk has 16 hexadecimal digits");
    std::vector<Checksum> values(digits.size() / width);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string_view one = digits.substr(i * width, width);
      std::from_chars(one.data(), one.data() + width, values[i], 16);
      if (to_text(values[i]) != one) scanner_.refuse("each chunk has 16 hexadecimal digits");
    }
    return values;
  }

  ManifestScanner scanner_;
};

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& path) {
  Manifest manifest = Parser(unsealed(text, path), path).manifest();
  const std::string problem = broken_rule(manifest);
  if (!problem.empty()) fail(ErrorCode::input, "{}: {}", path, problem);
  return manifest;
}

}  // namespace dstrain::checkpoint
