#pragma once
#include <cstddef>
#include <utility>
#include <vector>

namespace dstrain {

// Indices with types of their own. An id is declared beside what it indexes, as
// `enum class SegmentId : int {};`, and numbers the elements of a TypedVector from 0. An id of one
// kind does not compile where another kind is expected, and needs no cast to index its vector.

/// Returns the number of an id, for messages, files and arithmetic outside of ids.
template <class Id>
constexpr int to_int(Id id) {
  return static_cast<int>(id);
}

/// The id `count` after `id`.
template <class Id>
constexpr Id next_id(Id id, int count = 1) {
  return Id{to_int(id) + count};
}

/// Consecutive ids: [first, end).
template <class Id>
class IdRange {
 public:
  class Iterator {
   public:
    using value_type = Id;
    using difference_type = std::ptrdiff_t;
    constexpr Iterator() = default;
    constexpr explicit Iterator(Id id) : id_(id) {}
    constexpr Id operator*() const { return id_; }
    constexpr Iterator& operator++() {
      id_ = next_id(id_);
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend constexpr bool operator==(Iterator, Iterator) = default;

   private:
    Id id_{};
  };

  constexpr IdRange() = default;
  constexpr IdRange(Id first, Id end) : first_(first), end_(end) {}
  [[nodiscard]] constexpr Iterator begin() const { return Iterator(first_); }
  [[nodiscard]] constexpr Iterator end() const { return Iterator(end_); }
  [[nodiscard]] constexpr int size() const { return to_int(end_) - to_int(first_); }
  [[nodiscard]] constexpr bool empty() const { return first_ == end_; }
  /// The range must not be empty.
  [[nodiscard]] constexpr Id back() const { return next_id(end_, -1); }

 private:
  Id first_{};
  Id end_{};
};

/// A vector whose elements are accessed by id. Access is checked, as by std::vector::at().
template <class Id, class T>
class TypedVector {
  using Values = std::vector<T>;

 public:
  TypedVector() = default;
  explicit TypedVector(std::size_t size, const T& value = T()) : values_(size, value) {}
  explicit TypedVector(Values values) : values_(std::move(values)) {}

  [[nodiscard]] typename Values::reference operator[](Id id) { return values_.at(position(id)); }
  [[nodiscard]] typename Values::const_reference operator[](Id id) const {
    return values_.at(position(id));
  }
  /// Returns the id of the new element.
  Id push_back(T value) {
    const Id id = end_id();
    values_.push_back(std::move(value));
    return id;
  }
  T& emplace_back() { return values_.emplace_back(); }

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  [[nodiscard]] bool empty() const { return values_.empty(); }
  /// The id that the next new element gets.
  [[nodiscard]] Id end_id() const { return Id{static_cast<int>(values_.size())}; }
  [[nodiscard]] IdRange<Id> ids() const { return {Id{0}, end_id()}; }
  [[nodiscard]] auto begin() { return values_.begin(); }
  [[nodiscard]] auto end() { return values_.end(); }
  [[nodiscard]] auto begin() const { return values_.begin(); }
  [[nodiscard]] auto end() const { return values_.end(); }

 private:
  static std::size_t position(Id id) { return static_cast<std::size_t>(id); }
  Values values_;
};

}  // namespace dstrain
