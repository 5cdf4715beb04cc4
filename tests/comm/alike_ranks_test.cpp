// Ranks that were told different things do not begin.
#include "runtime/comm/alike_ranks.h"

#include "runtime/base/error.h"
#include "runtime/comm/control/shared_control_group.h"
#include "tests/support/catch.h"
#include "tests/support/ranks.h"

using namespace dstrain;
using Lines = std::vector<std::string>;

namespace {

/// What every rank says when each has its own lines; empty: they agree.
Lines errors_of(const std::vector<Lines>& told) {
  const int size = static_cast<int>(told.size());
  const auto groups = comm::make_thread_control_groups(size, 30);
  Lines errors(told.size());
  test::run_ranks(size, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    try {
      comm::require_alike_ranks(told[own], *groups[own]);
    } catch (const Error& error) {
      errors[own] = error.code() == ErrorCode::config ? error.what() : "of another code";
    }
  });
  return errors;
}

}  // namespace

TEST_CASE("Alike ranks: the first difference is reported on every rank", "[comm]") {
  const std::string rule =
      ": all ranks of a run need the same options, environment, configuration, model and data";
  struct Row {
    std::vector<Lines> told;
    std::string message;
  };
  const Row row = GENERATE_REF(values<Row>({
      {{{"--a 1", "--b 2"}, {"--a 1", "--b 2"}, {"--a 1", "--b 2"}}, ""},
      {{{}, {}}, ""},
      {{{"--a 1", "--b 2"}, {"--b 2", "--a 1"}}, ""},
      {{{"--a 1", "--b 2"}, {"--a 1", "--b 2"}, {"--a 1", "--b 3"}},
       "rank 0 has --b 2, rank 2 has --b 3" + rule},
      {{{"--a 1", "--b 2"}, {"--b 2"}}, "rank 0 has --a 1, and rank 1 does not" + rule},
      {{{"--a 1"}, {"--a 1", "--b 2"}}, "rank 1 has --b 2, and rank 0 does not" + rule},
  }));
  CAPTURE(row.told);
  CHECK(errors_of(row.told) == Lines(row.told.size(), row.message));
}
