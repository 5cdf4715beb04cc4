#include "tests/ops/elf_file.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>

#include <cxxabi.h>

namespace dstrain::test {

ElfFile::ElfFile(std::string_view bytes)
    : bytes_(bytes), header_(read_value<Elf64_Ehdr>(bytes, 0)) {
  const std::string_view names = contents(section(header_.e_shstrndx));
  for (std::uint32_t i = 0; i < header_.e_shnum; ++i) {
    const Elf64_Shdr own = section(i);
    sections_[names.substr(own.sh_name).data()] = own;
  }
}

std::string_view ElfFile::contents(const Elf64_Shdr& section) const {
  return bytes_.substr(section.sh_offset, section.sh_size);
}

std::vector<ElfFile::Symbol> ElfFile::symbols() const {
  const auto table = sections_.find(".symtab");
  if (table == sections_.end()) throw std::runtime_error("an ELF file without symbols");
  const std::string_view entries = contents(table->second);
  const std::string_view names = contents(sections_.at(".strtab"));
  std::vector<Symbol> symbols;
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= entries.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = read_value<Elf64_Sym>(entries, at);
    symbols.push_back({names.substr(symbol.st_name).data(), symbol.st_value});
  }
  return symbols;
}

Elf64_Shdr ElfFile::section(std::uint32_t index) const {
  return read_value<Elf64_Shdr>(bytes_, header_.e_shoff + sizeof(Elf64_Shdr) * index);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace dstrain::test
