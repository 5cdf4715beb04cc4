#include "tests/ops/kernel_code.h"

#include <algorithm>
#include <stdexcept>

#include "tests/ops/elf_file.h"

namespace dstrain::test {
namespace {

using Bytes = std::string_view;
constexpr Bytes info_prefix = ".nv.info.";

/// Records of .nv.info that are read here; each has four bytes before its values: how they are
/// written, what they are, and their size.
constexpr std::uint8_t sized_record = 4;
enum class Record : std::uint8_t { max_threads = 0x05, frame_size = 0x11, registers = 0x2f };

template <class Body>
void for_records(Bytes records, const Body& body) {
  for (std::size_t at = 0; at + 4 <= records.size();) {
    const bool sized = read_value<std::uint8_t>(records, at) == sized_record;
    const std::size_t size = sized ? read_value<std::uint16_t>(records, at + 2) : 0;
    const auto record = static_cast<Record>(read_value<std::uint8_t>(records, at + 1));
    if (sized) body(record, records.substr(at + 4, size));
    at += 4 + size;
  }
}

void append_kernels(const ElfFile& cubin, std::vector<KernelCode>& kernels) {
  const std::vector<ElfFile::Symbol> symbols = cubin.symbols();
  for (const auto& [section, own] : cubin.sections()) {
    if (!section.starts_with(info_prefix)) continue;
    const std::string symbol = section.substr(info_prefix.size());
    KernelCode kernel{.name = demangled(symbol)};
    for_records(cubin.contents(own), [&](Record record, Bytes values) {
      if (record == Record::max_threads) kernel.threads = read_value<std::int32_t>(values, 0);
    });
    const Bytes of_all = cubin.contents(cubin.sections().at(".nv.info"));
    for_records(of_all, [&](Record record, Bytes values) {
      if (record != Record::registers && record != Record::frame_size) return;
      if (symbols.at(read_value<std::uint32_t>(values, 0)).name != symbol) return;
      const auto number = read_value<std::int32_t>(values, 4);
      (record == Record::registers ? kernel.registers : kernel.stack_bytes) = number;
    });
    kernels.push_back(kernel);
  }
}

}  // namespace

int KernelCode::warps_at_once(int shared_bytes) const {
  constexpr int warp_threads = 32;
  constexpr int partitions = 4;  // of a multiprocessor, with 2^14 registers each
  constexpr int shared_of_all = 228 * 1024;
  constexpr int shared_of_system = 1024;  // of each block
  const int of_warp = (registers * warp_threads + 255) / 256 * 256;
  const int warps = std::min(64, (1 << 14) / of_warp * partitions);
  const int of_block = (threads + warp_threads - 1) / warp_threads;
  const int blocks =
      std::min({32, warps / of_block, shared_of_all / (shared_bytes + shared_of_system)});
  return blocks * of_block;
}

std::vector<KernelCode> kernels_in(const std::string& library) {
  const std::string text = bytes_of(library);
  const Bytes bytes(text);
  constexpr std::uint16_t machine_of_gpus = 190;
  std::vector<KernelCode> kernels;
  for (std::size_t at = bytes.find(ELFMAG); at != Bytes::npos; at = bytes.find(ELFMAG, at + 1)) {
    if (bytes.size() - at < sizeof(Elf64_Ehdr)) break;
    if (read_value<Elf64_Ehdr>(bytes, at).e_machine != machine_of_gpus) continue;
    append_kernels(ElfFile(bytes.substr(at)), kernels);
  }
  if (kernels.empty()) throw std::runtime_error("no kernels in " + library);
  std::ranges::sort(kernels, {}, &KernelCode::name);
  return kernels;
}

}  // namespace dstrain::test
