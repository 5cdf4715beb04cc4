// Errors of ranks and the launcher number collectives alike.
#include "runtime/engine/name_collective.h"

#include "tests/support/catch.h"

using namespace dstrain;

TEST_CASE("NameCollective: a failure in a collective names its number", "[engine]") {
  ProgressPage page;
  const auto named = [&](ErrorCode code) -> std::string {
    const Error error = engine::name_collective(Error(code, "rank 1 is gone"), page);
    CHECK(error.code() == code);
    return error.what();
  };
  CHECK(named(ErrorCode::comm) == "rank 1 is gone");  // before the first one
  page.begin_operation({.name = "all_gather"});
  page.end_operation();
  CHECK(named(ErrorCode::comm) == "rank 1 is gone");
  page.begin_operation({.name = "all_reduce"});
  CHECK(page.read()->collective.sequence == 2);
  for (const ErrorCode code : {ErrorCode::comm, ErrorCode::timeout, ErrorCode::aborted}) {
    CHECK(named(code) == "collective 2: rank 1 is gone");
  }
  CHECK(named(ErrorCode::io) == "rank 1 is gone");
}
