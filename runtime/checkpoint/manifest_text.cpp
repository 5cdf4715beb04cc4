#include "runtime/checkpoint/manifest_text.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"
#include "runtime/safetensors/header.h"

namespace dstrain::checkpoint {
namespace {

constexpr std::string_view manifest_head = "{\"format\":\"dstrain checkpoint\",\"version\":";
constexpr int manifest_version = 1;
constexpr const char* this_program = "dstrain " DSTRAIN_VERSION;

/// Returns the end of the text, with the checksum of all text before it.
std::string sealed(Checksum checksum) {
  return "\"checksum\":\"" + to_text(checksum) + "\"}\n";
}

using Out = std::back_insert_iterator<std::string>;

/// Writes "name":[ the items, each on its own line, and ],
template <class Items, class Write>
void write_list(std::string& text, const char* name, const Items& items, Write&& write) {
  fmt::format_to(Out(text), "\"{}\":[", name);
  const char* separator = "\n";
  for (const auto& item : items) {
    text += separator;
    write(item);
    separator = ",\n";
  }
  text += "],\n";
}

void write_tensor(std::string& text, const TensorRecord& tensor) {
  fmt::format_to(Out(text), R"({{"name":"{}","shape":[{}],"slices":[)", tensor.name,
                 fmt::join(tensor.shape.extents(), ","));
  const char* separator = "";
  for (const Slice& slice : tensor.slices) {
    fmt::format_to(Out(text), "{}[{},{},{}]", separator, slice.rank, slice.begin, slice.end);
    separator = ",";
  }
  text += "]}";
}

void write_file(std::string& text, const FileRecord& file) {
  fmt::format_to(Out(text), R"({{"path":"{}","bytes":{},"chunks":")", file.path, file.bytes);
  for (const Checksum chunk : file.chunks) text += to_text(chunk);
  text += "\"}";
}

constexpr std::size_t shown = 24;  ///< characters of the text in a message

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Scans the text of a manifest, which is JSON with one way to write each thing. Every method
/// throws Error{input} with the place if the text is not what the method expects.
class ManifestScanner {
 public:
  /// `file` is for messages. Keeps views of both.
  ManifestScanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void expect(std::string_view literal);
  /// Returns whether `literal` comes next, and passes it.
  bool pass(std::string_view literal);
  /// Reads a number in [0, manifest_number_max], without leading zeros.
  std::int64_t number();
  /// Reads a string in double quotes: printable ASCII without escapes.
  std::string_view word();
  void expect_end();

  /// Reads `open`, comma-separated items, each after `separator`, and "]".
  template <class Item>
  void list(std::string_view open, std::string_view separator, Item&& item) {
    expect(open);
    if (pass("]")) return;
    do {
      expect(separator);
      item();
    } while (pass(","));
    expect("]");
  }

  [[noreturn]] void refuse(const std::string& problem) const;

 private:
  [[noreturn]] void unexpected(std::string_view expected) const;

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

void ManifestScanner::expect(std::string_view literal) {
  if (!pass(literal)) unexpected(literal);
}

bool ManifestScanner::pass(std::string_view literal) {
  if (!text_.substr(at_).starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

std::int64_t ManifestScanner::number() {
  const std::string_view rest = text_.substr(at_);
  const auto digits =
      static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin());
  if (digits == 0 || (digits > 1 && rest.front() == '0')) unexpected("a number without sign");
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + digits, value);
  if (error != std::errc() || value > manifest_number_max) unexpected("a number of at most 2^53");
  at_ += digits;
  return value;
}

std::string_view ManifestScanner::word() {
  if (!pass("\"")) unexpected("a string");
  const std::string_view rest = text_.substr(at_);
  const auto size =
      static_cast<std::size_t>(std::ranges::find_if_not(rest, is_plain) - rest.begin());
  at_ += size;
  if (!pass("\"")) unexpected("printable ASCII without escapes, then \"");
  return rest.substr(0, size);
}

void ManifestScanner::expect_end() {
  if (at_ != text_.size()) unexpected("the end");
}

void ManifestScanner::refuse(const std::string& problem) const {
  fail(ErrorCode::input, "{}: byte {}: {}", file_, at_, problem);
}

void ManifestScanner::unexpected(std::string_view expected) const {
  std::string found(text_.substr(at_, shown));
  std::string wanted(expected);
  const auto mark = [](char c) {
    return c < ' ' || c > '~';
  };
  std::ranges::replace_if(found, mark, ' ');
  std::ranges::replace_if(wanted, mark, ' ');
  refuse(fmt::format("expected {}, found {}", wanted, found.empty() ? "the end" : found));
}

/// Whether the text has the right checksum, in the format of this version.
bool is_sealed(std::string_view text) {
  const std::size_t seal_bytes = sealed(0).size();
  if (text.size() < seal_bytes) return false;
  const std::string_view body = text.substr(0, text.size() - seal_bytes);
  return text.ends_with(sealed(checksum_of(std::as_bytes(std::span(body)))));
}

/// Throws Error{newer_format} for a manifest of a newer version. All versions begin the same way,
/// up to the program's name; newer ones may use another checksum. If the checksum fits once the
/// version is replaced by this one, a digit was damaged and the manifest is not newer.
void refuse_newer(std::string_view text, const std::string& path) {
  if (!text.starts_with(manifest_head)) return;
  std::string_view rest = text.substr(manifest_head.size());
  int version = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), version);
  if (error != std::errc() || version <= manifest_version) return;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  constexpr std::string_view program_key = ",\"program\":\"";
  if (!rest.starts_with(program_key)) return;
  const std::string as_this_version = fmt::format("{}{}{}", manifest_head, manifest_version, rest);
  if (is_sealed(as_this_version)) return;
  rest.remove_prefix(program_key.size());
  constexpr std::size_t program_max = 100;
  const std::string program(rest.substr(0, std::min(rest.find('"'), program_max)));
  fail(ErrorCode::newer_format,
       "{}: {} wrote it in version {} of the format; this is {}, which reads version {}: use the "
       "version that wrote it, or a newer one",
       path, printable(program), version, this_program, manifest_version);
}

/// Returns the text before its checksum, which must be right.
std::string_view unsealed(std::string_view text, const std::string& path) {
  const std::size_t seal_bytes = sealed(0).size();
  if (text.size() < seal_bytes) {
    fail(ErrorCode::input, "{}: damaged: its {} bytes are too few for a manifest", path,
         text.size());
  }
  const std::string_view body = text.substr(0, text.size() - seal_bytes);
  const std::string expected = sealed(checksum_of(std::as_bytes(std::span(body))));
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
    scanner_.expect(manifest_head);
    if (const std::int64_t version = scanner_.number(); version != manifest_version) {
      scanner_.refuse(fmt::format("version {} of the format; this program reads version {}",
                                  version, manifest_version));
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

  DType dtype() {
    if (scanner_.pass("\"BF16\"")) return DType::bf16;
    if (scanner_.pass("\"F16\"")) return DType::f16;
    scanner_.expect("\"F32\"");
    return DType::f32;
  }

  StateRecord state() {
    StateRecord state;
    scanner_.expect("{\"name\":");
    state.name = scanner_.word();
    scanner_.expect(",\"dtype\":");
    state.dtype = dtype();
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

std::string to_text(const Manifest& manifest) {
  const std::string problem = broken_rule(manifest);
  DSTRAIN_CHECK(problem.empty(), "{}", problem);
  std::string text(manifest_head);
  fmt::format_to(Out(text), "{},\"program\":\"{}\",\n", manifest_version,
                 manifest.program.empty() ? this_program : manifest.program);
  fmt::format_to(Out(text), "\"step\":{},\"world_size\":{},\"chunk_bytes\":{},\n", manifest.step,
                 manifest.world_size, chunk_bytes);
  write_list(text, "states", manifest.states, [&](const StateRecord& state) {
    fmt::format_to(Out(text), R"({{"name":"{}","dtype":"{}","file":"{}"}})", state.name,
                   safetensors::dtype_name(state.dtype), state.file);
  });
  write_list(text, "tensors", manifest.tensors,
             [&](const TensorRecord& tensor) { write_tensor(text, tensor); });
  write_list(text, "files", manifest.files,
             [&](const FileRecord& file) { write_file(text, file); });
  return text + sealed(checksum_of(std::as_bytes(std::span(text))));
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  refuse_newer(text, path);
  Manifest manifest = Parser(unsealed(text, path), path).manifest();
  const std::string problem = broken_rule(manifest);
  if (!problem.empty()) fail(ErrorCode::input, "{}: {}", path, problem);
  return manifest;
}

Manifest read_manifest(int directory, const std::filesystem::path& path) {
  const std::string name = (path / manifest_name).string();
  const UniqueFd fd = open_beneath(directory, manifest_name, name);
  const Bytes bytes = regular_bytes(fd.get(), name);
  if (bytes > manifest_bytes_max) {
    fail(ErrorCode::input, "{}: {} is more than the {} allowed for a manifest", name,
         format_bytes(bytes), format_bytes(manifest_bytes_max));
  }
  std::string text(static_cast<std::size_t>(bytes), '\0');
  text.resize(read_fully_at(fd.get(), 0, std::as_writable_bytes(std::span(text)), name));
  Manifest manifest = parse_manifest(text, name);
  const auto step = step_of(path.filename().string());
  if (step && *step != manifest.step) {
    fail(ErrorCode::input, "{}: is of step {}; was the directory renamed?", name, manifest.step);
  }
  return manifest;
}

}  // namespace dstrain::checkpoint
