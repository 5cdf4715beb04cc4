// What ranks print, at the launcher's end: nothing lost or torn, little memory, no secrets.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using test::Launch;
using Words = std::vector<std::string>;

namespace {

/// Counts the whole lines of each rank; a line that is torn, missing or out of order fails.
std::map<int, long> count_lines(const std::string& out) {
  std::map<int, long> next;
  std::istringstream lines(out);
  long wrong = 0;
  for (std::string line; std::getline(lines, line);) {
    int rank = -1;
    long number = -1;
    if (std::sscanf(line.c_str(), "[rank %d]: %*d %ld", &rank, &number) != 2) rank = -1;
    const std::string whole =
        fmt::format("[rank {0}]: {0} {1} größer als je zuvor, 0123456789", rank, next[rank]);
    if (line != whole && ++wrong < 5) UNSCOPED_INFO(line);
    ++next[rank];
  }
  CHECK(wrong == 0);
  return next;
}

void check_memory(long kib) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  CHECK(kib < 100 * 1024);
#endif
  fmt::print("launcher and agent: at most {:.1f} MiB\n", static_cast<double>(kib) / 1024);
}

/// Lines of "[rank 0]: " without it.
std::vector<std::string> lines_of_rank_0(const std::string& out) {
  std::vector<std::string> found;
  std::istringstream lines(out);
  const std::string prefix = "[rank 0]: ";
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(prefix)) found.push_back(line.substr(prefix.size()));
  }
  return found;
}

}  // namespace

TEST_CASE("Logs: 64 ranks that print steadily lose no line", "[e2e][logs]") {
  const char* const typed = std::getenv("DSTRAIN_FLOOD_SECONDS");
  const long seconds = typed != nullptr ? std::atol(typed) : 1;
  const long lines = 1000 * seconds;
  Launch launch({"--oversubscribe", "--num_gpus", "64", LINE_RANK, std::to_string(lines), "1000"});
  REQUIRE(launch.wait(test::hang_seconds + 3.0 * static_cast<double>(seconds)) == 0);
  const auto counted = count_lines(launch.out());
  CHECK(counted.size() == 64);
  for (const auto& [rank, count] : counted) CHECK(count == lines);
  check_memory(launch.peak_kib());
}

TEST_CASE("Logs: a rank at full speed loses no line", "[e2e][logs]") {
  const test::TempDir folder;
  const long lines = 300'000;
  const std::string script = fmt::format(
      "if [ $RANK = 0 ]; then exec {0} {1} 0; else exec {0} 200 100; fi", LINE_RANK, lines);
  Launch launch(
      {"--enable_each_rank_log", folder.path().string(), "--num_gpus", "2", "sh", "-c", script});
  REQUIRE(launch.wait() == 0);
  const auto counted = count_lines(launch.out());
  CHECK(counted.at(0) == lines);
  CHECK(counted.at(1) == 200);
  check_memory(launch.peak_kib());
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::ifstream log(entry.path());
    const auto newlines =
        std::count(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>(), '\n');
    const bool first = entry.path().string().ends_with("_rank0.log");
    CHECK(newlines == (first ? lines : 200));
  }
}

TEST_CASE("Logs: progress bars and lines without an end come whole", "[e2e][logs]") {
  const std::string script =
      "printf ' 10%%\\r 20%%\\r100%%\\r\\n'; printf 'gr\\303'; sleep 0.1; printf "
      "'\\266\\303\\237e\\n'; "
      "printf 'no end'";
  Launch launch({"-q", "--num_gpus", "2", "sh", "-c", script});
  CHECK(launch.wait() == 0);
  CHECK(lines_of_rank_0(launch.out()) == Words{" 10%", " 20%", "100%", "größe", "no end"});
}

TEST_CASE("Logs: a very long line comes in pieces between characters", "[e2e][logs]") {
  const std::string script = "yes ä | head -n 200000 | tr -d '\\n'; echo; echo after";
  Launch launch({"-q", "--num_gpus", "2", "sh", "-c", script});
  CHECK(launch.wait() == 0);
  const Words pieces = lines_of_rank_0(launch.out());
  REQUIRE(pieces.size() > 2);
  CHECK(pieces.back() == "after");
  std::size_t bytes = 0;
  for (const std::string& piece : pieces) {
    bytes += piece.size();
    CHECK(piece.size() <= 64U << 10);
    if (piece != "after") CHECK((piece.size() % 2 == 0 && piece.starts_with("ä")));
  }
  CHECK(bytes == 400'000 + 5);
}

TEST_CASE("Logs: secrets are nowhere to be read", "[e2e][logs]") {
  const test::TempDir folder;
  std::ofstream(folder.path() / ".dstrain_env") << "FILE_SECRET=hushfile\n";
  const std::vector<launcher::EnvVar> secrets{
      {"DSTRAIN_TOKEN", "hushtoken"}, {"MY_API_KEY", "hushkey"}, {"NCCL_ANY_SECRET", "hushsecret"}};
  const Launch::Options options{.env = secrets, .directory = folder.path().string()};
  const Words words{"--log_level", "debug", "--env", "MY_API_KEY",
                    "--num_gpus",  "2",     "--env", "SHOWN=yes"};
  const std::string seen = "echo $MY_API_KEY $FILE_SECRET $DSTRAIN_TOKEN | wc -c; exec sleep 1000";
  for (const bool dry : {false, true}) {
    Words all = words;
    if (dry) all.emplace_back("--dry_run");
    all.insert(all.end(), {"sh", "-c", seen});
    Launch launch(all, options);
    if (!dry) {
      REQUIRE(launch.wait_for_output("27", 2));  // the ranks have them all
      for (const pid_t pid : launch.processes()) {
        std::ifstream file(fmt::format("/proc/{}/cmdline", pid));
        std::ostringstream line;
        line << file.rdbuf();
        CHECK(line.str().find("hush") == std::string::npos);
      }
      launch.signal(SIGTERM);
    }
    CHECK(launch.wait() == (dry ? 0 : 143));
    CHECK((launch.out() + launch.err()).find("hush") == std::string::npos);
    if (dry) CHECK(launch.out().find("\"SHOWN\":\"yes\"") != std::string::npos);
  }
}
