#include "tests/ops/cubins.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>

#include <cxxabi.h>
#include <elf.h>

namespace dstrain::test {
namespace {

using Bytes = std::string_view;
constexpr Bytes info_prefix = ".nv.info.";

/// Records of .nv.info that are read here; each has four bytes before its values: how they are
/// written, what they are, and their size.
constexpr std::uint8_t sized_record = 4;
enum class Record : std::uint8_t { max_threads = 0x05, frame_size = 0x11, registers = 0x2f };

template <class T>
T read(Bytes bytes, std::size_t at) {
  if (at + sizeof(T) > bytes.size()) throw std::runtime_error("a cubin ends too early");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : name;
}

/// An ELF file that begins where `bytes` do.
class Cubin {
 public:
  explicit Cubin(Bytes bytes) : bytes_(bytes), header_(read<Elf64_Ehdr>(bytes, 0)) {
    const std::uint64_t names = section(header_.e_shstrndx).sh_offset;
    for (std::uint32_t i = 0; i < header_.e_shnum; ++i) {
      const Elf64_Shdr own = section(i);
      sections_[bytes_.data() + names + own.sh_name] = own;
    }
  }

  void append_kernels(std::vector<KernelCode>& kernels) const {
    for (const auto& [name, own] : sections_) {
      if (!name.starts_with(info_prefix)) continue;
      const std::string symbol = name.substr(info_prefix.size());
      KernelCode kernel{.name = demangled(symbol)};
      for_records(own, [&](Record record, Bytes values) {
        if (record == Record::max_threads) kernel.threads = read<std::int32_t>(values, 0);
      });
      for_records(sections_.at(".nv.info"), [&](Record record, Bytes values) {
        if (record != Record::registers && record != Record::frame_size) return;
        if (symbol_name(read<std::uint32_t>(values, 0)) != symbol) return;
        const auto number = read<std::int32_t>(values, 4);
        (record == Record::registers ? kernel.registers : kernel.stack_bytes) = number;
      });
      kernels.push_back(kernel);
    }
  }

 private:
  [[nodiscard]] Elf64_Shdr section(std::uint32_t index) const {
    return read<Elf64_Shdr>(bytes_, header_.e_shoff + sizeof(Elf64_Shdr) * index);
  }
  [[nodiscard]] std::string symbol_name(std::uint32_t index) const {
    const Elf64_Shdr& symbols = sections_.at(".symtab");
    const auto symbol = read<Elf64_Sym>(bytes_, symbols.sh_offset + sizeof(Elf64_Sym) * index);
    return bytes_.data() + sections_.at(".strtab").sh_offset + symbol.st_name;
  }
  template <class Body>
  void for_records(const Elf64_Shdr& own, const Body& body) const {
    const Bytes records = bytes_.substr(own.sh_offset, own.sh_size);
    for (std::size_t at = 0; at + 4 <= records.size();) {
      const bool sized = read<std::uint8_t>(records, at) == sized_record;
      const std::size_t size = sized ? read<std::uint16_t>(records, at + 2) : 0;
      const auto record = static_cast<Record>(read<std::uint8_t>(records, at + 1));
      if (sized) body(record, records.substr(at + 4, size));
      at += 4 + size;
    }
  }

  Bytes bytes_;
  Elf64_Ehdr header_;
  std::map<std::string, Elf64_Shdr> sections_;
};

}  // namespace

int KernelCode::warps_at_once() const {
  constexpr int warp_threads = 32;
  constexpr int partitions = 4;  // of a multiprocessor, with 2^14 registers each
  const int of_warp = (registers * warp_threads + 255) / 256 * 256;
  const int warps = std::min(64, (1 << 14) / of_warp * partitions);
  const int of_block = (threads + warp_threads - 1) / warp_threads;
  return std::min(32, warps / of_block) * of_block;
}

std::vector<KernelCode> kernels_in(const std::filesystem::path& library) {
  std::ifstream file(library, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const Bytes bytes(text);
  constexpr std::uint16_t machine_of_gpus = 190;
  std::vector<KernelCode> kernels;
  for (std::size_t at = bytes.find(ELFMAG); at != Bytes::npos; at = bytes.find(ELFMAG, at + 1)) {
    if (bytes.size() - at < sizeof(Elf64_Ehdr)) break;
    if (read<Elf64_Ehdr>(bytes, at).e_machine != machine_of_gpus) continue;
    Cubin(bytes.substr(at)).append_kernels(kernels);
  }
  if (kernels.empty()) throw std::runtime_error("no kernels in " + library.string());
  std::ranges::sort(kernels, {}, &KernelCode::name);
  return kernels;
}

}  // namespace dstrain::test
