#include "tests/support/strict_safetensors.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dstrain::test {
namespace {

using Json = nlohmann::ordered_json;
using Faults = std::vector<std::string>;

constexpr std::uint64_t header_bytes_max = 100'000'000;

const std::map<std::string, std::uint64_t>& bits_of_dtypes() {
  static const std::map<std::string, std::uint64_t> table{
      {"BOOL", 8}, {"U8", 8},   {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8},
      {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},   {"F8_E8M0", 8},
      {"I32", 32}, {"U32", 32}, {"F32", 32}, {"C64", 64},    {"F64", 64},
      {"I64", 64}, {"U64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  return table;
}

/// Parses, noting every key that an object has twice.
Json parse(const std::string& text, Faults& faults) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int /*depth*/, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value).second) {
      faults.push_back("the key " + value.dump() + " appears twice");
    }
    return true;
  };
  return Json::parse(text, watch);
}

bool is_size(const Json& value) {
  return value.is_number_unsigned();
}

void check_metadata(const Json& metadata, Faults& faults) {
  if (!metadata.is_object()) return faults.push_back("__metadata__ is no object");
  for (const auto& [key, value] : metadata.items()) {
    if (!value.is_string()) faults.push_back("metadata " + key + " is no string");
  }
  if (metadata.value("format", Json()) != "pt") faults.push_back("metadata format is not \"pt\"");
}

/// Checks one tensor, which must begin at `next`; returns where it ends.
std::uint64_t check_tensor(const std::string& name,
                           const Json& tensor,
                           std::uint64_t next,
                           Faults& faults) {
  const auto fault = [&](std::string_view what) {
    faults.push_back(fmt::format("{}: {}", name, what));
    return next;
  };
  if (!tensor.is_object() || tensor.size() != 3) return fault("no object of three members");
  const Json dtype = tensor.value("dtype", Json());
  const Json shape = tensor.value("shape", Json());
  const Json offsets = tensor.value("data_offsets", Json());
  if (!dtype.is_string() || !bits_of_dtypes().contains(dtype)) return fault("unknown dtype");
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_size)) {
    return fault("a shape that is no array of sizes");
  }
  if (!offsets.is_array() || offsets.size() != 2 || !is_size(offsets[0]) || !is_size(offsets[1])) {
    return fault("data_offsets that are no two numbers");
  }
  std::uint64_t bits = bits_of_dtypes().at(dtype);
  for (const Json& extent : shape) bits *= extent.get<std::uint64_t>();
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin != next) fault(fmt::format("begins at {}, where {} is next", begin, next));
  if (end < begin || bits % 8 != 0 || end - begin != bits / 8) fault("a size unlike its shape");
  return end;
}

void check_header(const std::string& text, std::uint64_t data_bytes, Faults& faults) {
  if (!text.starts_with('{')) return faults.push_back("the header does not begin with {");
  const std::size_t last = text.find_last_not_of(' ');
  if (last == std::string::npos || text[last] != '}') {
    return faults.push_back("after the header there is something else than spaces");
  }
  const Json header = parse(text, faults);
  std::uint64_t next = 0;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(value, faults);
    } else {
      next = check_tensor(name, value, next, faults);
    }
  }
  if (!header.contains("__metadata__")) faults.push_back("no __metadata__");
  if (next != data_bytes) {
    faults.push_back(fmt::format("tensors take {} of {} bytes of data", next, data_bytes));
  }
}

}  // namespace

Faults safetensors_faults(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) return {"shorter than 8 bytes"};
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > header_bytes_max) return {"a header over 100 MB"};
  if (size > bytes.size() - sizeof size) return {"a header longer than the file"};
  Faults faults;
  if (size % 8 != 0) faults.push_back("the data does not begin at a multiple of 8");
  try {
    check_header(bytes.substr(sizeof size, size), bytes.size() - sizeof size - size, faults);
  } catch (const nlohmann::json::exception& error) {
    faults.push_back(error.what());
  }
  return faults;
}

}  // namespace dstrain::test
