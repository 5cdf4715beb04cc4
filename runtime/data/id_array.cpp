#include "runtime/data/id_array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "runtime/base/error.h"

namespace dstrain::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

template <class Id>
Id id_at(std::span<const std::byte> bytes, std::size_t index) {
  Id id{};
  std::memcpy(&id, bytes.data() + index * sizeof(Id), sizeof(Id));
  return id;
}

/// Whether a value can be an id; false for NaN.
template <class Id>
bool is_id(Id id) {
  if constexpr (std::is_floating_point_v<Id>) return id >= 0 && std::trunc(id) == id;
  return std::is_unsigned_v<Id> || id >= 0;
}

template <class Id>
bool is_below(Id id, std::int64_t vocabulary) {
  if constexpr (std::is_floating_point_v<Id>) return id < static_cast<Id>(vocabulary);
  return static_cast<std::int64_t>(id) < vocabulary;
}

/// Copies ids. Returns the index of the first one outside of the vocabulary, or their number.
template <class Id>
std::size_t copy_ids(std::span<const std::byte> bytes,
                     std::int64_t vocabulary,
                     std::span<std::int32_t> ids) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Id id = id_at<Id>(bytes, i);
    if (!is_id(id) || !is_below(id, vocabulary)) return i;
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): it is not negative.
    ids[i] = static_cast<std::int32_t>(id);
  }
  return ids.size();
}

/// Calls `visit` with a value of the C++ type of `type`.
template <class Visit>
auto with_type(IdType type, Visit&& visit) {
  switch (type) {
    case IdType::u8:
      return visit(std::uint8_t{});
    case IdType::i8:
      return visit(std::int8_t{});
    case IdType::u16:
      return visit(std::uint16_t{});
    case IdType::i16:
      return visit(std::int16_t{});
    case IdType::u32:
      return visit(std::uint32_t{});
    case IdType::i32:
      return visit(std::int32_t{});
    case IdType::i64:
      return visit(std::int64_t{});
    case IdType::f32:
      return visit(float{});
    case IdType::f64:
      return visit(double{});
  }
  DSTRAIN_CHECK(false, "type {}", static_cast<int>(type));
}

}  // namespace

std::int64_t bytes_of(IdType type) {
  return with_type(type, [](auto id) { return static_cast<std::int64_t>(sizeof id); });
}

IdArray::IdArray(IdType type, std::span<const std::byte> bytes)
    : type_(type), bytes_(bytes), size_(std::ssize(bytes) / bytes_of(type)) {}

void IdArray::read(std::int64_t begin,
                   std::span<std::int32_t> ids,
                   std::int64_t vocabulary,
                   const std::string& path) const {
  const auto count = std::ssize(ids);
  DSTRAIN_CHECK(begin >= 0 && begin <= size_ && count <= size_ - begin, "tokens {}+{} of {}", begin,
                count, size_);
  const auto bytes = bytes_.subspan(static_cast<std::size_t>(begin * bytes_of(type_)));
  with_type(type_, [&](auto type) {
    using Id = decltype(type);
    const std::size_t bad = copy_ids<Id>(bytes, vocabulary, ids);
    if (bad == ids.size()) return;
    const Id id = id_at<Id>(bytes, bad);
    const std::int64_t position = begin + static_cast<std::int64_t>(bad);
    if (!is_id(id)) {
      fail(ErrorCode::input, "{}: token {} is {}, which is not an id", path, position, id);
    }
    fail(ErrorCode::input, "{}: token {} is {}, but the model's vocabulary ends at {}", path,
         position, id, vocabulary - 1);
  });
}

}  // namespace dstrain::data
