// How many ranks can go on with an elastic training, and how they share its batch.
#include "runtime/config/elastic_job.h"

#include "runtime/os/file.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

ElasticJob job_of(const std::string& text, std::int64_t ranks, test::Arguments more = {}) {
  const test::TempDir folder;
  const std::string file = folder.path() / "ds.json";
  write_text_file(file, text);
  more.insert(more.end(), {"--deepspeed", file});
  return elastic_job(read_train_flags(more), ranks);
}

}  // namespace

TEST_CASE("KeptBatch: any number of ranks shares the same batch or fails", "[config][elastic]") {
  for (const bool given : {true, false}) {
    for (std::int64_t train = 1; train <= 48; ++train) {
      for (std::int64_t micro = 1; micro <= train; ++micro) {
        for (std::int64_t ranks = 1; ranks <= 50; ++ranks) {
          const auto batch = share_kept_batch({train, micro, given}, ranks);
          const bool fits = given ? train % (ranks * micro) == 0 : train % ranks == 0;
          if (batch.has_value() != fits) FAIL(train << " " << micro << " " << ranks);
          if (!fits) continue;
          const bool whole = batch->micro * batch->accumulation * ranks == train;
          const bool fitting = given ? batch->micro == micro : batch->micro <= micro;
          if (!whole || !fitting || batch->train != train) FAIL(train << micro << ranks);
        }
      }
    }
  }
  SUCCEED();
}

TEST_CASE("KeptBatch: survives encoding and decoding", "[config][elastic]") {
  for (const bool given : {true, false}) {
    const auto back = decode_kept_batch(encode_kept_batch({12, 6, given}));
    REQUIRE(back.ok());
    CHECK(back.value().train == 12);
    CHECK(back.value().micro == 6);
    CHECK(back.value().micro_given == given);
  }
  for (const char* const text : {"", "12", "12 of ", "of 6", "12 of 0", "2 of 3", "a of b"}) {
    CHECK_FALSE(decode_kept_batch(text).ok());
  }
}

TEST_CASE("ElasticJob: the most ranks that share the batch", "[config][elastic]") {
  struct Row {
    std::string config;
    std::int64_t ranks;      ///< of the whole job
    std::int64_t available;  ///< of these ...
    std::int64_t most;       ///< ... so many can
    std::int64_t train;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"train_batch_size": 12})", 4, 3, 3, 12},
      {R"({"train_batch_size": 12})", 6, 5, 4, 12},
      {R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 6})", 2, 1, 1, 12},
      {R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 4})", 3, 2, 1, 12},
      {R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})", 3, 2, 2, 12},
      {R"({"train_micro_batch_size_per_gpu": 2})", 3, 2, 1, 6},
      {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"})", 3, 2, 1, 24},
      {R"({"train_batch_size": 5})", 5, 4, 1, 5},
      {R"({"train_batch_size": 12})", 5, 5, 4, 12},  // not even at the start
  }));
  CAPTURE(row.config);
  const ElasticJob job = job_of(row.config, row.ranks);
  CHECK(job.most_ranks(row.available) == row.most);
  REQUIRE(job.kept.has_value());
  CHECK(job.kept->train == row.train);
}

TEST_CASE("ElasticJob: the section elasticity decides", "[config][elastic]") {
  const ElasticJob job = job_of(R"({"elasticity": {"enabled": true, "max_train_batch_size": 100,
      "micro_batch_sizes": [8, 10, 12], "min_gpus": 2, "version": 0.1}})",
                                6);
  CHECK_FALSE(job.kept.has_value());
  CHECK(job.valid_counts == std::vector<std::int64_t>{2, 3, 4, 6, 8, 12});
  CHECK(job.most_ranks(7) == 6);
  CHECK(job.most_ranks(1) == 0);
}

TEST_CASE("ElasticJob: a batch that cannot be kept is refused", "[config][elastic]") {
  const auto told = [](const std::string& config) {
    return message_of([&] { job_of(config, 2); });
  };
  CHECK(contains(told("{}"), "needs to be provided"));
  CHECK(contains(told(R"({"train_batch_size": 0})"), "has to be greater than 0"));
  CHECK(contains(told(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 5})"),
                 "for any number of ranks"));
  CHECK(
      contains(told(R"({"train_batch_size": 12, "checkpoint": {"use_node_local_storage": true}})"),
               "takes its shards"));
  CHECK(contains(told(R"({"elasticity": {"enabled": true}})"), "is missing"));
}

TEST_CASE("ElasticJob: fewer ranks take more steps and say so", "[config][elastic]") {
  const std::string file = R"({"train_batch_size": 12, "gradient_accumulation_steps": 2})";
  const config::Context context{.world_size = 1, .kept_batch = KeptBatch{12, 3, false}};
  const TrainSettings settings = test::settings_of(file, {}, context);
  CHECK(settings.train_batch_size == 12);
  CHECK(settings.micro_batch_size == 3);
  CHECK(settings.accumulation_steps == 4);
  REQUIRE(settings.warnings.size() == 1);
  CHECK(contains(settings.warnings.front(), "4 for 1 rank, not 2"));
  const config::Context odd{.world_size = 5, .kept_batch = KeptBatch{12, 3, false}};
  CHECK(
      contains(message_of([&] { test::settings_of(file, {}, odd); }), "5 ranks of an elastic job"));
}
