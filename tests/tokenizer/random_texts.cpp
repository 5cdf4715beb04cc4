#include "tests/tokenizer/random_texts.h"

#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/sha256.h"
#include "runtime/os/file.h"

namespace dstrain::test {
namespace {

constexpr Bytes alphabets_bytes_max = mebibyte;
constexpr std::size_t alphabet_of_specials = 10;

/// Bytes that make up no character which younger versions of Unicode have added.
std::vector<int> make_drawn_bytes() {
  std::vector<int> bytes(0xCD);
  std::iota(bytes.begin(), bytes.end(), 0);
  bytes.insert(bytes.end(), {0xE5, 0xE8, 0xED, 0xF0, 0xF4, 0xFF});
  return bytes;
}

const std::vector<int> drawn_bytes = make_drawn_bytes();

/// splitmix64 (Steele et al., OOPSLA'14).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}

  std::uint64_t below(std::uint64_t bound) {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return (mixed ^ mixed >> 31) % bound;
  }

 private:
  std::uint64_t state_;
};

void append_number(std::string& bytes, std::size_t number) {
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(number >> shift & 0xFF));
  }
}

}  // namespace

RandomTexts::RandomTexts(const std::filesystem::path& folder,
                         const std::vector<std::string>& specials) {
  const auto lists =
      nlohmann::json::parse(read_text_file(folder / "alphabets.json", alphabets_bytes_max));
  alphabets_ = lists.get<std::vector<std::vector<std::string>>>();
  std::vector<std::string>& place = alphabets_.at(alphabet_of_specials);
  place.insert(place.begin(), specials.begin(), specials.end());
}

std::string RandomTexts::text(std::uint64_t number) const {
  Draw draw(number);
  const std::uint64_t size = 1 + draw.below(40);
  std::string text;
  for (std::uint64_t i = 0; i < size; ++i) {
    if (number % 8 == 7) {
      text.push_back(static_cast<char>(drawn_bytes[draw.below(drawn_bytes.size())]));
    } else {
      const auto& entries = alphabets_[draw.below(alphabets_.size())];
      text += entries[draw.below(entries.size())];
    }
  }
  return text;
}

std::string RandomTexts::block_hash(const tokenizer::Tokenizer& tokenizer,
                                    std::uint64_t block) const {
  std::string bytes;
  for (std::uint64_t i = 0; i < texts_per_block; ++i) {
    const auto ids = tokenizer.encode(text(block * texts_per_block + i));
    append_number(bytes, ids.size());
    for (const std::int32_t id : ids) append_number(bytes, static_cast<std::size_t>(id));
    for (const auto special : {tokenizer::SpecialText::kept, tokenizer::SpecialText::skipped}) {
      const std::string decoded = tokenizer.decode(ids, special);
      append_number(bytes, decoded.size());
      bytes += decoded;
    }
  }
  std::string hexadecimal;
  for (const auto byte : sha256(bytes)) {
    hexadecimal += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return hexadecimal;
}

}  // namespace dstrain::test
