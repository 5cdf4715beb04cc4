#include "runtime/base/shell_word.h"

#include "tests/support/catch.h"

namespace dstrain::test {

TEST_CASE("ShellWord: quotes only words that a shell would split or expand", "[base]") {
  CHECK(shell_word("d/a-b_1.jsonl") == "d/a-b_1.jsonl");
  CHECK(shell_word("") == "''");
  CHECK(shell_word("a b") == "'a b'");
  CHECK(shell_word("it's $5") == "'it'\\''s $5'");
  CHECK(shell_word("~/a") == "'~/a'");
  CHECK(shell_path("-a.jsonl") == "./-a.jsonl");
  CHECK(shell_path("- a") == "'./- a'");
  CHECK(shell_path("a*") == "'a*'");
}

}  // namespace dstrain::test
