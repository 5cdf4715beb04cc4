// tokenizer_lines DIRECTORY: reads texts, a line of hexadecimal bytes each, and writes a line for
// each: its tokens, and the texts that they decode to, without and with skipped special tokens.
#include <cstdint>
#include <iostream>
#include <string>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/tokenizer/tokenizer.h"

namespace {

using namespace dstrain;

std::string from_hexadecimal(const std::string& line) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string to_hexadecimal(const std::string& bytes) {
  std::string line;
  for (const char byte : bytes) line += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return line;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: tokenizer_lines DIRECTORY\n");
    return 2;
  }
  try {
    const auto tokenizer = tokenizer::Tokenizer::load(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      const auto ids = tokenizer.encode(from_hexadecimal(line));
      fmt::print("{}|{}|{}\n", fmt::join(ids, " "), to_hexadecimal(tokenizer.decode(ids)),
                 to_hexadecimal(tokenizer.decode(ids, tokenizer::SpecialText::skipped)));
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
