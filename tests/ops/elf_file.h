#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>

namespace dstrain::test {

/// The value that lies at `at`. Throws std::runtime_error where the bytes end before it does.
template <class T>
T read_value(std::string_view bytes, std::size_t at) {
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("an ELF file ends too early");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

/// A file of libraries and programs, of this machine or of GPUs (elf(5), 64 bits).
class ElfFile {
 public:
  struct Symbol {
    std::string name;
    std::uint64_t value = 0;  ///< in a library, from where it is loaded
  };

  /// The file that begins where `bytes` do, which have to outlive it.
  explicit ElfFile(std::string_view bytes);

  [[nodiscard]] std::uint16_t machine() const { return header_.e_machine; }
  [[nodiscard]] const std::map<std::string, Elf64_Shdr>& sections() const { return sections_; }
  [[nodiscard]] std::string_view contents(const Elf64_Shdr& section) const;
  /// By their index; those of local names too, unless they are stripped.
  [[nodiscard]] std::vector<Symbol> symbols() const;

 private:
  [[nodiscard]] Elf64_Shdr section(std::uint32_t index) const;

  std::string_view bytes_;
  Elf64_Ehdr header_;
  std::map<std::string, Elf64_Shdr> sections_;
};

/// All of it.
std::string bytes_of(const std::string& path);

/// As C++ writes it.
std::string demangled(const std::string& name);

}  // namespace dstrain::test
