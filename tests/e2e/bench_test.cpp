#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/rank_process.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

const Words tiny_gemm{"bench",
                      "gemm",
                      "--runs",
                      "2",
                      "--block_size",
                      "8",
                      "--config_overrides",
                      "n_layer=2,n_embd=32,n_head=2,vocab_size=50"};
const Words tiny_adam{"bench", "adam", "--runs", "2", "--numel", "1001"};
const Words tiny_comm{"-q",     "--num_gpus", "2",       "bench",     "comm",
                      "--runs", "2",          "--sizes", "1KiB,100KB"};

/// What a command prints on standard output, which is one JSON object.
nlohmann::json run_json(Words words) {
  words.push_back("--json");
  Launch launch(words);
  CHECK(launch.wait() == 0);
  CAPTURE(launch.out(), launch.err());
  return nlohmann::json::parse(launch.out());
}

bool all_positive(const nlohmann::json& object, const Words& keys) {
  return std::ranges::all_of(keys, [&](const std::string& key) {
    const nlohmann::json& value = object.at(nlohmann::json::json_pointer(key));
    return value.is_number() && value.get<double>() > 0;
  });
}

bool is_summary(const nlohmann::json& value) {
  return all_positive(value, {"/p5", "/median", "/p95"}) && value["p5"] <= value["median"] &&
         value["median"] <= value["p95"];
}

}  // namespace

TEST_CASE("Bench: gemm gives the rate of every product of a step", "[e2e][bench]") {
  const nlohmann::json json = run_json(tiny_gemm);
  CHECK(json["bench"] == "gemm");
  CHECK(all_positive(json, {"/threads", "/peak_flops/fma", "/step/flop", "/step/fp32/flops",
                            "/step/bf16/flops", "/step/fp32/seconds", "/step/bf16/seconds"}));
  std::set<std::string> names;
  double flop = 0;
  for (const nlohmann::json& product : json["products"]) {
    CAPTURE(product.dump());
    names.insert(product["name"].get<std::string>());
    CHECK(all_positive(product, {"/m", "/n", "/k", "/times", "/fp32/flops", "/bf16/flops"}));
    CHECK(is_summary(product["fp32"]["seconds"]));
    CHECK(is_summary(product["bf16"]["seconds"]));
    flop += 2 * product["m"].get<double>() * product["n"].get<double>() *
            product["k"].get<double>() * product["times"].get<double>();
  }
  CHECK(names.size() == 15);
  // 6 N FLOP per token, N the parameters that are multiplied with.
  const double multiplied = 2.0 * 12 * 32 * 32 + 50 * 32;
  CHECK(flop == Catch::Approx(6 * multiplied * 4 * 8));
  CHECK(json["step"]["flop"].get<double>() == Catch::Approx(flop));
}

TEST_CASE("Bench: adam is compared with a loop that moves the same bytes", "[e2e][bench]") {
  const nlohmann::json json = run_json(tiny_adam);
  CHECK(json["numel"] == 1001);
  REQUIRE(json["results"].size() == 2);
  CHECK(json["results"][0]["bytes_per_parameter"] == 28);
  CHECK(json["results"][1]["bytes_per_parameter"] == 30);
  for (const nlohmann::json& row : json["results"]) {
    CHECK(all_positive(row, {"/bytes_per_second", "/move_bytes_per_second", "/of_move"}));
    CHECK(is_summary(row["seconds"]));
    CHECK(is_summary(row["move_seconds"]));
  }
}

TEST_CASE("Bench: comm measures every collective in both kinds of memory", "[e2e][bench]") {
  const nlohmann::json json = run_json(tiny_comm);
  CHECK(json["world_size"] == 2);
  CHECK(json["bytes_copied"] == 100'000);
  std::set<std::string> rows;
  for (const nlohmann::json& row : json["results"]) {
    CHECK(all_positive(row,
                       {"/bytes_per_second", "/copy_bytes_per_second", "/of_copy", "/of_bound"}));
    CHECK(is_summary(row["seconds"]));
    CHECK(is_summary(row["copy_seconds"]));
    rows.insert(fmt::format("{} {} {} {}", row["backend"].get<std::string>(),
                            row["memory"].get<std::string>(), row["collective"].get<std::string>(),
                            row["bytes"].get<int>()));
  }
  CHECK(rows.size() == json["results"].size());
  for (const std::string memory : {"segment", "host"}) {
    for (const std::string collective : {"reduce_scatter", "reduce_scatter in place", "all_gather",
                                         "all_gather in place", "all_reduce"}) {
      for (const int bytes : {1024, 100'000}) {
        CHECK(rows.count(fmt::format("shm {} {} {}", memory, collective, bytes)) == 1);
      }
    }
  }
}

TEST_CASE("Bench: processor time is measured by another clock", "[e2e][bench]") {
  Words words = tiny_comm;
  words.push_back("--cpu_time");
  const nlohmann::json json = run_json(words);
  CHECK(json["cpu_time"] == true);
  for (const nlohmann::json& row : json["results"]) CHECK(is_summary(row["seconds"]));
}

TEST_CASE("Bench: tables carry the ceiling", "[e2e][bench]") {
  struct Row {
    Words words;
    Words texts;
  };
  const auto row =
      GENERATE(Row{tiny_gemm, {"peak loops", "mlp.c_fc dW", "the ceiling of a step"}},
               Row{tiny_adam, {"moves the same bytes", "fp32 with bf16 copy"}},
               Row{tiny_comm, {"copied by all ranks at once", "of bound", "all_gather in place"}});
  Launch launch(row.words);
  CHECK(launch.wait() == 0);
  for (const std::string& text : row.texts) CHECK_THAT(launch.out(), ContainsSubstring(text));
  CHECK_THAT(launch.out(), !ContainsSubstring("[rank 0]"));
}

TEST_CASE("Bench: usage errors are found before a rank starts", "[e2e][bench]") {
  struct Row {
    Words words;
    std::string message;
  };
  const auto row = GENERATE(
      Row{{"bench"}, "say what: gemm, comm, adam, checkpoint, io or launch"},
      Row{{"bench", "everything"}, "bench everything: say what"},
      Row{{"bench", "gem"}, "did you mean gemm?"}, Row{{"bench", "gemm", "--runs", "0"}, "--runs"},
      Row{{"bench", "gemm", "--numel", "5"}, "--numel"},
      Row{{"bench", "gemm", "--config_name", "gpt9"}, "gpt9"},
      Row{{"bench", "gemm", "--config_overrides", "n_head=5"}, "n_head"},
      Row{{"bench", "adam", "--numel", "-1"}, "--numel"},
      Row{{"bench", "launch", "--hosts", "0"}, "--hosts"},
      Row{{"bench", "io", "--path", "/nowhere"}, "--path"},
      Row{{"bench", "io", "--io_size", "5000"}, "--io_size 5000: must be a multiple of 4096"},
      Row{{"bench", "io", "--block_sizes", "4KiB,0"}, "--block_sizes 0: must be a multiple"},
      Row{{"bench", "io", "--queue_depths", "0"}, "--queue_depths"},
      Row{{"bench", "io", "--threads", "257"}, "--threads"},
      Row{{"--num_gpus", "2", "bench", "launch"}, "takes no launch options"},
      Row{{"--num_gpus", "2", "bench", "adam"}, "leave --num_gpus out"},
      Row{{"bench", "comm"}, "dstrain --num_gpus 2 bench comm"},
      Row{{"--num_gpus", "2", "bench", "comm", "--sizes", "4KiB,x"}, "--sizes"},
      Row{{"--num_gpus", "2", "bench", "comm", "--sizes", "7"}, "less than a float for each of 2"});
  CAPTURE(row.words);
  Launch launch(row.words);
  CHECK(launch.wait() == 2);
  CHECK_THAT(launch.err(), ContainsSubstring(row.message) && !ContainsSubstring("job "));
  CHECK(launch.out().empty());
}

TEST_CASE("Bench: the list of commands names each measurement", "[e2e][bench]") {
  Launch launch({"--help"});
  CHECK(launch.wait() == 0);
  const std::size_t start = launch.out().find("\n  bench ");
  REQUIRE(start != std::string::npos);
  const std::string line =
      launch.out().substr(start + 1, launch.out().find('\n', start + 1) - start);
  for (const char* name : {"gemm", "comm", "adam", "checkpoint", "io", "launch"}) {
    CHECK_THAT(line, ContainsSubstring(std::string(" ") + name));
  }
}

TEST_CASE("Bench: help tells the options of all", "[e2e][bench]") {
  Launch launch({"bench", "--help"});
  CHECK(launch.wait() == 0);
  for (const char* text :
       {"gemm", "comm", "adam", "io", "--runs", "--json", "--sizes", "--numel", "--io_size"}) {
    CHECK_THAT(launch.out(), ContainsSubstring(text));
  }
}

TEST_CASE("Bench: checkpoint compares saving and loading with plain files", "[e2e][bench]") {
  const nlohmann::json json = run_json({"bench", "checkpoint", "--runs", "2", "--bytes", "3MB"});
  CHECK(json["bytes"] == 3'000'000);
  REQUIRE(json["results"].size() == 2);
  for (const nlohmann::json& row : json["results"]) {
    CHECK(is_summary(row["seconds"]));
    CHECK(is_summary(row["plain_seconds"]));
    CHECK(all_positive(row, {"/bytes_per_second", "/plain_bytes_per_second", "/of_plain"}));
  }
}

TEST_CASE("Bench: io measures each setting and gives the best", "[e2e][bench]") {
  const test::TempDir directory;
  const nlohmann::json json = run_json({"bench", "io", "--path", directory.path().string(),
                                        "--runs", "1", "--io_size", "1MiB", "--block_sizes",
                                        "64KiB,256KiB", "--queue_depths", "4", "--threads", "1,2"});
  CHECK(json["bytes"] == 1 << 20);
  CHECK(json["direct"].is_boolean());
  std::set<std::string> rows;
  for (const nlohmann::json& row : json["results"]) {
    CHECK(is_summary(row["seconds"]));
    CHECK(all_positive(row, {"/bytes_per_second"}));
    if (row.contains("of_fio")) {
      CHECK(is_summary(row["fio_seconds"]));
      CHECK(all_positive(row, {"/fio_bytes_per_second", "/of_fio"}));
    }
    rows.insert(fmt::format("{} {} {} {}", row["traffic"].get<std::string>(),
                            row["block_size"].get<int>(), row["queue_depth"].get<int>(),
                            row["threads"].get<int>()));
  }
  CHECK(rows.size() == 3 * 2 * 2);
  CHECK(rows.count("mixed 65536 4 2") == 1);
  CHECK(all_positive(json["aio"], {"/block_size", "/queue_depth", "/intra_op_parallelism"}));
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("Bench: io prints a section that a configuration can have", "[e2e][bench]") {
  Launch launch({"bench", "io", "--runs", "1", "--io_size", "256KiB", "--block_sizes", "64KiB",
                 "--queue_depths", "2", "--threads", "1"});
  CHECK(launch.wait() == 0);
  for (const char* text : {"A swap file of 256 KiB", "fio", "mixed"}) {
    CHECK_THAT(launch.out(), ContainsSubstring(text));
  }
  const std::size_t begin = launch.out().find("\"aio\": ");
  REQUIRE(begin != std::string::npos);
  const nlohmann::json section =
      nlohmann::json::parse(fmt::format("{{{}}}", launch.out().substr(begin)));
  CHECK(section["aio"]["block_size"] == 65536);
  CHECK(section["aio"]["queue_depth"] == 2);
  CHECK(section["aio"]["intra_op_parallelism"] == 1);
}

TEST_CASE("Bench: launch compares the time of the rendezvous with plain process starts",
          "[e2e][bench]") {
  const nlohmann::json json = run_json({"bench", "launch", "--runs", "2", "--hosts", "1,5"});
  REQUIRE(json["results"].size() == 2);
  for (const nlohmann::json& row : json["results"]) {
    CHECK(is_summary(row["met_seconds"]));
    CHECK(is_summary(row["ended_seconds"]));
    CHECK(is_summary(row["plain_seconds"]));
    CHECK(row["met_seconds"]["median"] <= row["ended_seconds"]["median"]);
  }
}

TEST_CASE("Bench: a launch that fails leaves no file", "[e2e][bench]") {
  const test::TempDir folder;
  const std::string script =
      fmt::format("ulimit -n 64; TMPDIR='{}' '{}' bench launch --hosts 100 --runs 1 2>&1",
                  folder.path().string(), DSTRAIN_PROGRAM);
  test::RankProcess shell({{"/bin/sh", "-c", script}, {}});
  CHECK_THAT(shell.read_all(), ContainsSubstring("Too many open files"));
  CHECK(shell.wait() != 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}
