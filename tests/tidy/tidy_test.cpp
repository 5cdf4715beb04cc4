// The tree obeys the rules, and each rule can fail.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/tidy/rules.h"

namespace dstrain::tidy {
namespace {

namespace fs = std::filesystem;

const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_tree(DSTRAIN_SOURCE_DIR);
  return files;
}

/// Runs a rule over the whole tree and reports all problems at once.
template <class Rule>
void check_tree(Rule&& rule) {
  std::string problems;
  for (const SourceFile& file : tree()) {
    for (const std::string& problem : rule(file)) problems += problem + "\n";
  }
  INFO(problems);
  CHECK(problems.empty());
}

/// A tree of one header per folder and the file in question.
std::vector<SourceFile> small_tree() {
  return {make_source_file("runtime/base/error.h", "#pragma once\n"),
          make_source_file("runtime/comm/communicator.h", "#pragma once\n"),
          make_source_file("runtime/config/settings.h", "#pragma once\n"),
          make_source_file("runtime/ops/matmul.h", "#pragma once\n"),
          make_source_file("launcher/process/process.h", "#pragma once\n"),
          make_source_file("launcher/protocol/protocol.h", "#pragma once\n"),
          make_source_file("launcher/plan/options.h", "#pragma once\n"),
          make_source_file("launcher/agent/agent.h", "#pragma once\n"),
          make_source_file("launcher/hosts/relay.h", "#pragma once\n"),
          make_source_file("launcher/job/launch.h", "#pragma once\n"),
          make_source_file("zero/partition.h", "#pragma once\n"),
          make_source_file("tests/support/ranks.h", "#pragma once\n")};
}

}  // namespace

TEST_CASE("Tidy: the tree is read", "[tidy]") {
  CHECK(tree().size() > 50);
  for (const SourceFile& file : tree()) {
    CAPTURE(file.path);
    CHECK_FALSE(file.in("build"));
    CHECK_FALSE(file.in(".git"));
  }
}

TEST_CASE("Tidy: includes follow the arrows of the folders", "[tidy]") {
  check_tree([](const SourceFile& file) { return check_includes(file, tree()); });
}

TEST_CASE("Tidy: device memory is for what runs on the device", "[tidy]") {
  check_tree(check_host_access);
}

TEST_CASE("Tidy: vendor headers stay in their plug-ins and heavy ones in sources", "[tidy]") {
  check_tree(check_vendor_headers);
}

TEST_CASE("Tidy: headers begin with pragma once", "[tidy]") {
  check_tree(check_pragma_once);
}

TEST_CASE("Tidy: lines are short", "[tidy]") {
  check_tree(check_columns);
}

TEST_CASE("Tidy: whitespace is clean", "[tidy]") {
  check_tree(check_whitespace);
}

TEST_CASE("Tidy: nothing that ends the process prints or sleeps where it must not", "[tidy]") {
  check_tree(check_banned_words);
}

TEST_CASE("Tidy: every source is built", "[tidy]") {
  check_tree([](const SourceFile& file) { return check_built(file, tree()); });
}

TEST_CASE("Tidy: test names can be filters and every test binary has a label", "[tidy]") {
  check_tree(check_test_names);
  check_tree(check_test_labels);
}

TEST_CASE("Tidy: no test case returns early", "[tidy]") {
  check_tree(check_early_returns);
}

TEST_CASE("Tidy: links of the pages lead somewhere", "[tidy]") {
  check_tree([](const SourceFile& file) {
    return check_links(file, [](const std::string& path) {
      return fs::exists(fs::path(DSTRAIN_SOURCE_DIR) / path);
    });
  });
}

TEST_CASE("Tidy rules: an include against the arrows is found", "[tidy]") {
  struct Row {
    const char* path;
    const char* include;
    const char* problem;  // empty: none
  };
  const auto row = GENERATE(values<Row>({
      {"runtime/comm/store.cpp", "runtime/base/error.h", ""},
      {"runtime/comm/store.cpp", "zero/partition.h", "runtime/comm may not include zero"},
      {"runtime/tensor/shape.cpp", "runtime/ops/matmul.h",
       "runtime/tensor may not include runtime/ops"},
      {"runtime/comm/store.cpp", "runtime/ops/matmul.h", ""},
      {"runtime/engine/engine.cpp", "runtime/comm/communicator.h", ""},
      {"runtime/engine/engine.cpp", "zero/partition.h", "runtime/engine may not include zero"},
      {"zero/store.cpp", "runtime/comm/communicator.h", ""},
      {"offload/swap.cpp", "zero/partition.h", "offload may not include zero"},
      {"launcher/plan/a.cpp", "runtime/config/settings.h", ""},
      {"launcher/plan/a.cpp", "runtime/comm/communicator.h",
       "launcher/plan may not include runtime/comm"},
      {"launcher/process/a.cpp", "launcher/plan/options.h",
       "launcher/process may not include launcher/plan"},
      {"launcher/protocol/a.h", "launcher/process/process.h", ""},
      {"launcher/protocol/a.h", "launcher/plan/options.h",
       "launcher/protocol may not include launcher/plan"},
      {"launcher/agent/a.cpp", "launcher/plan/options.h", ""},
      {"launcher/agent/a.cpp", "launcher/job/launch.h",
       "launcher/agent may not include launcher/job"},
      {"launcher/agent/a.cpp", "launcher/hosts/relay.h",
       "launcher/agent may not include launcher/hosts"},
      {"launcher/hosts/ssh/a.cpp", "launcher/hosts/relay.h", ""},
      {"launcher/hosts/ssh/a.cpp", "launcher/protocol/protocol.h", ""},
      {"launcher/hosts/ssh/a.cpp", "launcher/agent/agent.h",
       "launcher/hosts may not include launcher/agent"},
      {"launcher/hosts/a.cpp", "launcher/job/launch.h",
       "launcher/hosts may not include launcher/job"},
      {"launcher/job/a.cpp", "launcher/hosts/relay.h", ""},
      {"launcher/job/a.cpp", "launcher/agent/agent.h",
       "launcher/job may not include launcher/agent"},
      {"launcher/a.cpp", "launcher/job/launch.h",
       "folder \"launcher\" has no row in the table of include arrows"},
      {"cmd/dstrain/main.cpp", "launcher/agent/agent.h", ""},
      {"zero/store.cpp", "launcher/plan/options.h", "zero may not include launcher/plan"},
      {"cmd/dstraind/main.cpp", "zero/partition.h", ""},
      {"cmd/dstraind/main.cpp", "tests/support/ranks.h", "cmd may not include tests"},
      {"tests/zero/a_test.cpp", "tests/support/ranks.h", ""},
      {"zero/store.cpp", "partition.h", "no file \"partition.h\"; includes start at the root"},
      {"misc/a.cpp", "zero/partition.h",
       "folder \"misc\" has no row in the table of include arrows"},
  }));
  CAPTURE(row.path, row.include);
  const auto file =
      make_source_file(row.path, "#include \"" + std::string(row.include) + "\"\nint x;\n");
  const Problems problems = check_includes(file, small_tree());
  if (*row.problem == '\0') {
    CHECK(problems.empty());
  } else {
    CHECK(problems == Problems{std::string(row.path) + ":1: " + row.problem});
  }
}

TEST_CASE("Tidy rules: an include in a comment counts for nothing", "[tidy]") {
  const auto file = make_source_file("runtime/comm/store.cpp",
                                     "/*\n#include \"zero/partition.h\"\n*/\n"
                                     "// #include \"zero/partition.h\"\n");
  CHECK(check_includes(file, small_tree()).empty());
}

TEST_CASE("Tidy rules: a way into device memory is found", "[tidy]") {
  const auto problems_of = [](const char* path, const char* include) {
    return check_host_access(make_source_file(path, "#include \"" + std::string(include) + "\"\n"))
        .size();
  };
  CHECK(problems_of("zero/sharded_store.cpp", "runtime/tensor/host_access.h") == 1);
  CHECK(problems_of("runtime/model/layers/linear.cpp", "runtime/ops/elements.h") == 1);
  CHECK(problems_of("runtime/comm/host_communicator.cpp", "runtime/tensor/host_access.h") == 0);
  CHECK(problems_of("runtime/ops/add_cpu.cpp", "runtime/ops/elements.h") == 0);
  CHECK(problems_of("zero/communication.cpp", "runtime/device/cpu_stream_access.h") == 1);
  CHECK(problems_of("runtime/ops/add_cpu.cpp", "runtime/device/cpu_stream_access.h") == 0);
  CHECK(problems_of("zero/sharded_store.cpp", "runtime/tensor/tensor_view.h") == 0);
}

TEST_CASE("Tidy rules: vendor and heavy headers are found", "[tidy]") {
  const auto problems_of = [](const char* path, const char* include) {
    return check_vendor_headers(make_source_file(path, "#include <" + std::string(include) + ">\n"))
        .size();
  };
  CHECK(problems_of("runtime/device/stream.cpp", "cuda_runtime.h") == 1);
  CHECK(problems_of("runtime/comm/store.cpp", "mpi.h") == 1);
  CHECK(problems_of("runtime/comm/store.cpp", "nccl.h") == 1);
  CHECK(problems_of("runtime/comm/nccl/nccl.cpp", "nccl.h") == 0);
  CHECK(problems_of("runtime/config/json.h", "nlohmann/json.hpp") == 1);
  CHECK(problems_of("runtime/config/json.h", "nlohmann/json_fwd.hpp") == 0);
  CHECK(problems_of("runtime/config/json.cpp", "nlohmann/json.hpp") == 0);
  CHECK(problems_of("runtime/config/json.h", "string") == 0);
}

TEST_CASE("Tidy rules: a header without pragma once is found", "[tidy]") {
  CHECK(check_pragma_once(make_source_file("zero/a.h", "#include <string>\n")).size() == 1);
  CHECK(check_pragma_once(make_source_file("zero/a.h", "#pragma once\n")).empty());
  CHECK(check_pragma_once(make_source_file("zero/a.cpp", "int x;\n")).empty());
}

TEST_CASE("Tidy rules: long lines are found", "[tidy]") {
  const std::string hundred = "// " + std::string(97, 'x') + "\n";
  const std::string accents = "// " + std::string(90, 'x') + "äöüäöüä\n";
  CHECK(check_columns(make_source_file("zero/a.h", hundred)).empty());
  CHECK(check_columns(make_source_file("zero/a.h", accents)).empty());
  CHECK(check_columns(make_source_file("zero/a.h", "\nx" + hundred)) ==
        Problems{"zero/a.h:2: 101 columns"});
  CHECK(check_columns(make_source_file("docs/a.md", "x" + hundred)).empty());
  CHECK(check_columns(make_source_file("zero/a.h", std::string(1000, '\n'))).empty());
}

TEST_CASE("Tidy rules: untidy whitespace is found", "[tidy]") {
  const auto problems_of = [](const char* text) {
    return check_whitespace(make_source_file("a.md", text));
  };
  CHECK(problems_of("fine\n\nfine\n").empty());
  CHECK(problems_of("").empty());
  CHECK(problems_of("a\n\tb\n") == Problems{"a.md:2: tab"});
  CHECK(problems_of("a \n") == Problems{"a.md:1: blank at the end of the line"});
  CHECK(problems_of("a\r\n") == Problems{"a.md:1: carriage return"});
  CHECK(problems_of("a\nb") == Problems{"a.md:2: no newline at the end"});
}

TEST_CASE("Tidy rules: banned words are found where they are banned", "[tidy]") {
  struct Row {
    const char* path;
    const char* code;
    std::size_t problems;
  };
  const auto row = GENERATE(values<Row>({
      {"runtime/base/a.cpp", "exit(1);", 1},
      {"cmd/dstrain/a.cpp", "exit(1);", 0},
      {"launcher/a.cpp", "::_exit(127);", 0},  // a child after fork
      {"launcher/a.cpp", "// never exit(1)", 0},
      {"zero/a.cpp", "communicator.abort();", 0},
      {"zero/a.cpp", "std::abort();", 1},
      {"zero/a.cpp", "std::cout << 1;", 1},
      {"cmd/dstrain/a.cpp", "std::cout << 1;", 0},
      {"zero/a.cpp", "std::printf(\"x\");", 1},
      {"zero/a.cpp", "std::snprintf(b, n, \"x\");", 0},
      {"cmd/dstrain/a.cpp", "system(\"ls\");", 1},
      {"launcher/a.cpp", "popen(\"ls\", \"r\");", 1},
      {"launcher/a.cpp", "run(\"/bin/sh\", \"-c\");", 1},
      {"tests/e2e/a_test.cpp", "run(\"/bin/sh\", \"-c\");", 0},
      {"tests/e2e/a_test.cpp", "std::this_thread::sleep_for(1s);", 1},
      {"tests/e2e/a_test.cpp", "run(\"sleep\", \"100\");", 0},
      {"launcher/a.cpp", "std::this_thread::sleep_for(1s);", 0},
      {"tests/e2e/a_test.cpp", "::poll(nullptr, 0, 5);", 1},
      {"launcher/a.cpp", "poll(nullptr, 0, 5);", 1},
      {"tests/e2e/a_test.cpp", "::poll(&fd, 1, 5);", 0},
      {"tests/e2e/a_test.cpp", "WARN(\"no zsh here\");", 1},
      {"runtime/device/cuda/a.cu", "cudaDeviceSynchronize();", 1},
      {"zero/a.h", "using namespace std;", 1},
      {"zero/a.cpp", "using namespace std::chrono_literals;", 0},
  }));
  CAPTURE(row.path, row.code);
  const auto file = make_source_file(row.path, std::string(row.code) + "\n");
  CHECK(check_banned_words(file).size() == row.problems);
}

TEST_CASE("Tidy rules: a test case that returns early is found", "[tidy]") {
  const auto problems_of = [](const std::string& body) {
    return check_early_returns(make_source_file("tests/zero/a_test.cpp", body)).size();
  };
  CHECK(problems_of("TEST_CASE(\"A\") {\n  if (!has_mpi()) return;\n}\n") == 1);
  CHECK(problems_of("TEST_CASE(\"A\") {\n  if (x) {\n    WORD;\n    return;\n  }\n}\n") == 1);
  CHECK(problems_of("TEMPLATE_TEST_CASE(\"A\", \"\", int) {\n  if (x) return;\n}\n") == 1);
  CHECK(problems_of("TEST_CASE(\"A\") {\n  run([&](int a) {\n    return;\n  });\n}\n") == 0);
  CHECK(problems_of("TEST_CASE(\"A\") {\n  run([&] {\n    f();\n  });\n  return;\n}\n") == 1);
  CHECK(problems_of("void helper() {\n  if (x) return;\n}\n") == 0);
}

TEST_CASE("Tidy rules: a source that nothing builds is found", "[tidy]") {
  const std::vector<SourceFile> lists{
      make_source_file("zero/CMakeLists.txt", "dstrain_library(dstrain_zero SOURCES a.cpp)\n"),
      make_source_file("runtime/CMakeLists.txt", "add_library(r base/b.cpp)\n")};
  const auto problems_of = [&](const char* path) {
    return check_built(make_source_file(path, ""), lists).size();
  };
  CHECK(problems_of("zero/a.cpp") == 0);
  CHECK(problems_of("zero/aa.cpp") == 1);
  CHECK(problems_of("zero/b.cpp") == 1);
  CHECK(problems_of("zero/cpu/a.cpp") == 1);
  CHECK(problems_of("runtime/base/b.cpp") == 0);
  CHECK(problems_of("runtime/base/b.h") == 0);
}

TEST_CASE("Tidy rules: test names that are no filters are found", "[tidy]") {
  const auto problems_of = [](const std::string& name) {
    const std::string open = "TEST_CASE(";
    return check_test_names(make_source_file("tests/zero/a_test.cpp",
                                             open + "\"" + name + "\", \"[zero]\") {}\n"))
        .size();
  };
  CHECK(problems_of("Partition: ranges tile the tensor") == 0);
  CHECK(problems_of("Partition: one, two") == 1);
  CHECK(problems_of("Partition: a[0]") == 1);
  CHECK(problems_of("Partition: the \\\"best\\\"") == 1);
}

TEST_CASE("Tidy rules: test binaries without a known label are found", "[tidy]") {
  const auto problems_of = [](const char* text) {
    return check_test_labels(make_source_file("tests/zero/CMakeLists.txt", text));
  };
  CHECK(problems_of("dstrain_test(a LABEL unit\n  SOURCES a_test.cpp)\n").empty());
  CHECK(problems_of("\ndstrain_test(a SOURCES a_test.cpp)\n") ==
        Problems{"tests/zero/CMakeLists.txt:2: a has no known LABEL"});
  CHECK(problems_of("dstrain_test(a LABEL other SOURCES a_test.cpp)\n").size() == 1);
}

TEST_CASE("Tidy rules: a link that leads nowhere is found", "[tidy]") {
  const auto exists = [](const std::string& path) {
    return path == "docs/architecture.md";
  };
  const auto problems_of = [&](const char* text) {
    return check_links(make_source_file("docs/guide.md", text), exists);
  };
  CHECK(problems_of("See [the house](architecture.md#life-of-a-step).\n").empty());
  CHECK(problems_of("See [the house](../docs/architecture.md).\n").empty());
  CHECK(problems_of("See [elsewhere](https://example.org/a.md) or [below](#below).\n").empty());
  CHECK(problems_of("```\n[x](missing.md)\n```\n").empty());
  CHECK(problems_of("\nSee [this](missing.md).\n") ==
        Problems{"docs/guide.md:2: the link missing.md leads nowhere"});
}

TEST_CASE("Tidy rules: comments are blanked and literals kept", "[tidy]") {
  CHECK(without_comments("int a;  // b\nint c;\n") == "int a;      \nint c;\n");
  CHECK(without_comments("a /* b\nc */ d") == "a     \n     d");
  CHECK(without_comments("x = \"// no\";  // yes\n") == "x = \"// no\";        \n");
  CHECK(without_comments("x = \"a\\\"// no\"; // y") == "x = \"a\\\"// no\";     ");
  CHECK(without_comments("x = R\"(\" // no)\"; // y") == "x = R\"(\" // no)\";     ");
  CHECK(without_comments("1'000 // '\n2'000 // '\n") == "1'000     \n2'000     \n");
}

}  // namespace dstrain::tidy
