#include "runtime/safetensors/header.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/printable.h"
#include "runtime/base/units.h"

namespace dstrain::safetensors {
namespace {

constexpr std::size_t tensors_max = 1'000'000;
constexpr std::size_t dimensions_max = 32;

/// Quotes a name from the file for a message.
std::string in_quotes(std::string_view name) {
  return fmt::format("'{}'", printable(name));
}

/// Returns the bits of one element; 0 if the format has no such dtype.
std::uint64_t bits_of(std::string_view dtype) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 22> table{
      {{"F32", 32},        {"F16", 16},       {"BF16", 16}, {"F64", 64},    {"I64", 64},
       {"I32", 32},        {"I16", 16},       {"I8", 8},    {"U64", 64},    {"U32", 32},
       {"U16", 16},        {"U8", 8},         {"BOOL", 8},  {"F8_E4M3", 8}, {"F8_E5M2", 8},
       {"F8_E8M0", 8},     {"C64", 64},       {"F4", 4},    {"F6_E2M3", 6}, {"F6_E3M2", 6},
       {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}}};
  const auto* const found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == dtype; });
  return found == table.end() ? 0 : found->second;
}

/// Handles the header's JSON while it is parsed, and keeps only the entries. A callback returns
/// false and sets `problem` at the first violation of the format.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool /*value*/) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t /*value*/) override {
    return unexpected("a negative number");
  }
  bool number_float(number_float_t /*value*/, const string_t& text) override {
    return unexpected("the number " + printable(text));
  }
  bool binary(binary_t& /*value*/) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::array) return unexpected("a number");
    if (numbers_.size() >= dimensions_max)
      return refuse(in_quotes(name_) + " has too many dimensions");
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse(in_quotes(name_) + " has a size beyond 2^63");
    }
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || field_ != "dtype") return unexpected("a string");
    entries.back().dtype = value;
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == Place::root) {
      if (!names_.insert(value).second)
        return refuse("the name " + in_quotes(value) + " appears twice");
      name_ = value;
    } else {
      if (!fields_.insert(value).second) {
        return refuse("the key " + in_quotes(value) + " appears twice in " + in_quotes(name_));
      }
      field_ = value;
    }
    return true;
  }

  bool start_object(std::size_t /*count*/) override {
    if (place_ == Place::outside) {
      place_ = Place::root;
      return true;
    }
    if (place_ != Place::root) return unexpected("an object");
    fields_.clear();
    if (name_ == "__metadata__") {
      place_ = Place::metadata;
      return true;
    }
    if (entries.size() >= tensors_max) return refuse("there are over a million tensors");
    place_ = Place::tensor;
    entries.push_back({});
    entries.back().name = name_;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      for (const char* const needed : {"dtype", "shape", "data_offsets"}) {
        if (fields_.count(needed) == 0) return refuse(in_quotes(name_) + " has no " + needed);
      }
    }
    place_ = place_ == Place::root ? Place::outside : Place::root;
    return true;
  }

  bool start_array(std::size_t /*count*/) override {
    if (place_ != Place::tensor || (field_ != "shape" && field_ != "data_offsets")) {
      return unexpected("an array");
    }
    numbers_.clear();
    place_ = Place::array;
    return true;
  }

  bool end_array() override {
    Entry& entry = entries.back();
    place_ = Place::tensor;
    if (field_ == "shape") {
      entry.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2) return refuse(in_quotes(name_) + " needs two data_offsets");
    entry.begin = static_cast<std::uint64_t>(numbers_[0]);
    entry.end = static_cast<std::uint64_t>(numbers_[1]);
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return refuse("no valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place { outside, root, metadata, tensor, array };

  bool refuse(const std::string& what) {
    problem = what;
    return false;
  }
  bool unexpected(const std::string& what) {
    const std::string place = name_.empty() ? "at the top" : "in " + in_quotes(name_);
    return refuse(what + " is out of place " + place);
  }

  Place place_ = Place::outside;
  std::string name_;
  std::string field_;
  std::vector<std::int64_t> numbers_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> fields_;
};

/// Sets numel. Returns what is wrong with the entry by itself, or an empty text.
std::string check_entry(Entry& entry) {
  const std::uint64_t bits = bits_of(entry.dtype);
  if (bits == 0) return fmt::format("has an unknown dtype {}", in_quotes(entry.dtype));
  entry.numel = 1;
  bool overflow = false;
  for (const std::int64_t extent : entry.shape) {
    overflow = overflow || __builtin_mul_overflow(entry.numel, extent, &entry.numel);
  }
  std::uint64_t all_bits = 0;
  overflow =
      overflow || __builtin_mul_overflow(static_cast<std::uint64_t>(entry.numel), bits, &all_bits);
  if (overflow) return fmt::format("has a shape ({}) beyond 2^63", fmt::join(entry.shape, ", "));
  if (entry.end < entry.begin || all_bits % 8 != 0 || entry.end - entry.begin != all_bits / 8) {
    return fmt::format("has the data_offsets [{}, {}], but {} of shape ({}) takes {} bytes",
                       entry.begin, entry.end, entry.dtype, fmt::join(entry.shape, ", "),
                       all_bits / 8);
  }
  return {};
}

}  // namespace

const char* dtype_name(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::f16:
      return "F16";
    default:
      DSTRAIN_CHECK(false, "no safetensors of dtype {}", static_cast<int>(dtype));
  }
}

std::vector<Entry> parse_header(std::string_view header,
                                std::uint64_t data_bytes,
                                const std::string& file) {
  HeaderReader reader;
  // The parser would stop at a NUL and ignore the rest.
  if (header.find('\0') != std::string_view::npos) {
    fail(ErrorCode::input, "{}: bad safetensors header: no valid JSON: it holds a NUL byte", file);
  }
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &reader)) {
    fail(ErrorCode::input, "{}: bad safetensors header: {}", file, reader.problem);
  }
  for (Entry& entry : reader.entries) {
    const std::string problem = check_entry(entry);
    if (!problem.empty())
      fail(ErrorCode::input, "{}: tensor {} {}", file, in_quotes(entry.name), problem);
  }
  std::sort(reader.entries.begin(), reader.entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t next = 0;
  for (const Entry& entry : reader.entries) {
    if (entry.begin != next) {
      fail(ErrorCode::input, "{}: tensor {} starts at byte {} of the data, {} {}", file,
           in_quotes(entry.name), entry.begin,
           entry.begin > next ? "which leaves a hole after byte" : "inside the tensor that ends at",
           next);
    }
    next = entry.end;
  }
  if (next != data_bytes) {
    fail(ErrorCode::input, "{}: the tensors take {} bytes of data, but the file holds {}", file,
         next, data_bytes);
  }
  return std::move(reader.entries);
}

Layout lay_out(std::span<const TensorInfo> tensors) {
  nlohmann::ordered_json::object_t header{{"__metadata__", {{"format", "pt"}}}};
  std::unordered_set<std::string_view> names;
  Layout layout;
  for (const auto& [name, dtype, shape] : tensors) {
    DSTRAIN_CHECK(names.insert(name).second, "two tensors are named {}", name);
    const std::uint64_t begin = layout.bytes;
    layout.bytes += static_cast<std::uint64_t>(shape.numel() * size_of(dtype));
    layout.offsets.push_back(begin);
    const auto extents = shape.extents();
    nlohmann::ordered_json entry{
        {"dtype", dtype_name(dtype)},
        {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
        {"data_offsets", {begin, layout.bytes}}};
    // emplace() would compare each name with all earlier ones.
    header.emplace_back(name, std::move(entry));
  }
  std::string text = nlohmann::ordered_json(std::move(header)).dump();
  text.resize(static_cast<std::size_t>(round_up(static_cast<std::int64_t>(text.size()), 8)), ' ');
  const std::uint64_t text_bytes = text.size();
  layout.head.assign(reinterpret_cast<const char*>(&text_bytes), sizeof text_bytes);
  layout.head += text;
  for (std::uint64_t& offset : layout.offsets) offset += layout.head.size();
  layout.bytes += layout.head.size();
  return layout;
}

}  // namespace dstrain::safetensors
