// Stands in for libFuzzer where the compiler has none: replays the corpus in the given folders and
// then runs mutations of it, the same ones each time. The environment's DSTRAIN_FUZZ_RUNS says how
// many, DSTRAIN_FUZZ_SEED which. What ended the process lies in ./crash-input.
#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "tests/fuzz/target.h"
#include "tests/support/largest_allocation.h"

namespace dstrain::fuzz {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

constexpr std::size_t input_bytes_max = 1 << 16;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const std::string_view digits(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
  if (error != std::errc{} || end != digits.end()) {
    fail(ErrorCode::usage, "{}={}: a whole number is needed", variable, text);
  }
  return value;
}

std::vector<Bytes> read_corpus(int folders, char** names) {
  std::vector<fs::path> paths;
  for (int i = 0; i < folders; ++i) {
    for (const auto& item : fs::directory_iterator(names[i])) paths.push_back(item.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Bytes> corpus;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) fail(ErrorCode::usage, "no corpus: give a folder that holds files");
  return corpus;
}

std::size_t below(Random& random, std::size_t end) {
  return end == 0 ? 0 : static_cast<std::size_t>(random() % end);
}

/// A byte that parsers look at, or any.
std::uint8_t telling_byte(Random& random) {
  using namespace std::string_view_literals;
  constexpr auto bytes = "{}[]\",:0123456789-+.eE\\/ \n\t#*=tfn\0\x7f\xff\xc3"sv;
  if (random() % 4 == 0) return static_cast<std::uint8_t>(random());
  return static_cast<std::uint8_t>(bytes[below(random, bytes.size())]);
}

/// One change: a bit, a byte, a cut, a repeat, or a piece of another input.
void mutate(Bytes& input, const std::vector<Bytes>& corpus, Random& random) {
  const auto at = [&](std::size_t offset) {
    return input.begin() + static_cast<std::ptrdiff_t>(offset);
  };
  const std::size_t place = below(random, input.size() + 1);
  const std::size_t length = below(random, std::min<std::size_t>(input.size() - place, 64) + 1);
  switch (random() % 6) {
    case 0:
      if (place < input.size()) input[place] ^= static_cast<std::uint8_t>(1U << (random() % 8));
      break;
    case 1:
      if (place < input.size()) input[place] = telling_byte(random);
      break;
    case 2:
      input.insert(at(place), telling_byte(random));
      break;
    case 3:
      input.erase(at(place), at(place + length));
      break;
    case 4: {
      const Bytes repeated(at(place), at(place + length));
      input.insert(at(place), repeated.begin(), repeated.end());
      break;
    }
    default: {
      const Bytes& other = corpus[below(random, corpus.size())];
      const std::size_t begin = below(random, other.size() + 1);
      const std::size_t count = below(random, std::min<std::size_t>(other.size() - begin, 64) + 1);
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(begin);
      input.insert(at(place), first, first + static_cast<std::ptrdiff_t>(count));
    }
  }
  if (input.size() > input_bytes_max) input.resize(input_bytes_max);
}

const Bytes* running = nullptr;

/// Keeps the input that ends the process; then it ends.
void save_input(int signal) {
  std::signal(signal, SIG_DFL);
  const int fd = ::open("crash-input", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (running != nullptr && fd >= 0) {
    [[maybe_unused]] const ssize_t written = ::write(fd, running->data(), running->size());
  }
  ::raise(signal);
}

/// No input makes a parser ask for much more memory than its own size.
void run(const Bytes& input) {
  running = &input;
  test::take_largest_allocation();
  LLVMFuzzerTestOneInput(input.data(), input.size());
  const std::size_t largest = test::take_largest_allocation();
  DSTRAIN_CHECK(largest <= 64 * input.size() + (1 << 16), "{} bytes allocated for {} of input",
                largest, input.size());
}

}  // namespace
}  // namespace dstrain::fuzz

int main(int argc, char** argv) {
  using namespace dstrain::fuzz;
  const std::vector<Bytes> corpus = read_corpus(argc - 1, argv + 1);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, save_input);
  }
  for (const Bytes& input : corpus) run(input);
  Random random(number_from("DSTRAIN_FUZZ_SEED", 1));
  const std::uint64_t runs = number_from("DSTRAIN_FUZZ_RUNS", DSTRAIN_FUZZ_RUNS);
  for (std::uint64_t i = 0; i < runs; ++i) {
    Bytes input = corpus[below(random, corpus.size())];
    for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      mutate(input, corpus, random);
    }
    run(input);
  }
  fmt::print("{} inputs of the corpus, {} mutations\n", corpus.size(), runs);
}
