#include "runtime/base/typed_index.h"

#include <stdexcept>
#include <string>
#include <type_traits>

#include "tests/support/catch.h"

using namespace dstrain;

namespace {

enum class RowId : int {};
enum class ColumnId : int {};

template <class Vector, class Id>
concept Indexes = requires(Vector vector, Id id) {
  vector[id];
};

using Rows = TypedVector<RowId, std::string>;

}  // namespace

TEST_CASE("TypedVector: only its own ids index it", "[base][typed_index]") {
  STATIC_REQUIRE(Indexes<Rows, RowId>);
  STATIC_REQUIRE_FALSE(Indexes<Rows, ColumnId>);
  STATIC_REQUIRE_FALSE(Indexes<Rows, int>);
}

TEST_CASE("TypedVector: push_back returns the id of the element", "[base][typed_index]") {
  Rows rows;
  CHECK(rows.push_back("a") == RowId{0});
  CHECK(rows.end_id() == RowId{1});
  const RowId second = rows.push_back("b");
  rows[second] += "c";
  CHECK(rows[RowId{0}] == "a");
  CHECK(rows[RowId{1}] == "bc");
  CHECK(rows.size() == 2);
}

TEST_CASE("TypedVector: an id outside of it throws", "[base][typed_index]") {
  const Rows rows(2, "a");
  CHECK(rows[RowId{1}] == "a");
  CHECK_THROWS_AS(rows[RowId{2}], std::out_of_range);
  CHECK_THROWS_AS(rows[RowId{-1}], std::out_of_range);
}

TEST_CASE("TypedVector: booleans can be set by id", "[base][typed_index]") {
  TypedVector<RowId, bool> flags(3, false);
  flags[RowId{1}] = true;
  const std::vector<bool> all(flags.begin(), flags.end());
  CHECK(all == std::vector<bool>{false, true, false});
}

TEST_CASE("IdRange: lists the ids of a vector in order", "[base][typed_index]") {
  const Rows rows(3);
  std::vector<RowId> seen;
  for (const RowId id : rows.ids()) seen.push_back(id);
  CHECK(seen == std::vector{RowId{0}, RowId{1}, RowId{2}});
  CHECK(rows.ids().size() == 3);
  CHECK(rows.ids().back() == RowId{2});
  CHECK(Rows().ids().empty());
  CHECK(next_id(rows.ids().back()) == rows.end_id());
  CHECK(to_int(next_id(RowId{1}, 4)) == 5);
}
