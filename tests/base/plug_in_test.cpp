#include "runtime/os/plug_in.h"

#include <string>

#include "runtime/os/file.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;

TEST_CASE("PlugIn: is opened beside the program and its symbols are found", "[base]") {
  constexpr PlugIn plug_in{.file = "libplug_in_for_tests.so"};
  const Result<void*> opened = open_plug_in(plug_in);
  REQUIRE(opened.ok());
  CHECK(*static_cast<const int*>(plug_in_symbol(plug_in, opened.value(), "the_answer")) == 42);
  CHECK(test::error_of([&] { plug_in_symbol(plug_in, opened.value(), "the_question"); }) ==
        "libplug_in_for_tests.so is of another version: it lacks the_question; install one "
        "version");
}

TEST_CASE("PlugIn: a plug-in that cannot be opened says why", "[base]") {
  CHECK_THAT(
      open_plug_in({.file = "libno_such_plug_in.so"}).error(),
      Catch::Matchers::ContainsSubstring("libno_such_plug_in.so: cannot open shared object file"));
  const test::TempDir folder;
  const std::string damaged = (folder.path() / "libdamaged.so").string();
  write_text_file(damaged, "no library");
  CHECK_THAT(
      open_plug_in({.file = damaged.c_str()}).error(),
      Catch::Matchers::StartsWith(damaged) && Catch::Matchers::ContainsSubstring("too short"));
}
