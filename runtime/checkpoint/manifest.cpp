#include "runtime/checkpoint/manifest.h"

#include <iterator>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/manifest_format.h"

namespace dstrain::checkpoint {
namespace {

using Out = std::back_insert_iterator<std::string>;

/// "name":[ the items, each on a line of its own, and ],
template <class Items, class Write>
void write_list(std::string& text, const char* name, const Items& items, Write&& write) {
  fmt::format_to(Out(text), "\"{}\":[", name);
  const char* separator = "\n";
  for (const auto& item : items) {
    text += separator;
    write(item);
    separator = ",\n";
  }
  text += "],\n";
}

void write_tensor(std::string& text, const TensorRecord& tensor) {
  fmt::format_to(Out(text), R"({{"name":"{}","shape":[{}],"slices":[)", tensor.name,
                 fmt::join(tensor.shape.extents(), ","));
  const char* separator = "";
  for (const Slice& slice : tensor.slices) {
    fmt::format_to(Out(text), "{}[{},{},{}]", separator, slice.rank, slice.begin, slice.end);
    separator = ",";
  }
  text += "]}";
}

void write_file(std::string& text, const FileRecord& file) {
  fmt::format_to(Out(text), R"({{"path":"{}","bytes":{},"chunks":")", file.path, file.bytes);
  for (const Checksum chunk : file.chunks) text += to_text(chunk);
  text += "\"}";
}

}  // namespace

std::string Manifest::shard_path(const StateRecord& state, int rank) const {
  return fmt::format("global_step{}/zero_pp_rank_{}_mp_rank_00_{}.safetensors", step, rank,
                     state.file);
}

std::string to_text(const Manifest& manifest) {
  const std::string problem = broken_rule(manifest);
  DSTRAIN_CHECK(problem.empty(), "{}", problem);
  std::string text(format::head);
  fmt::format_to(Out(text), "{},\"program\":\"{}\",\n", format::version,
                 manifest.program.empty() ? format::this_program : manifest.program);
  fmt::format_to(Out(text), "\"step\":{},\"world_size\":{},\"chunk_bytes\":{},\n", manifest.step,
                 manifest.world_size, chunk_bytes);
  write_list(text, "states", manifest.states, [&](const StateRecord& state) {
    fmt::format_to(Out(text), R"({{"name":"{}","dtype":"{}","file":"{}"}})", state.name,
                   state.dtype == DType::bf16 ? "BF16" : "F32", state.file);
  });
  write_list(text, "tensors", manifest.tensors,
             [&](const TensorRecord& tensor) { write_tensor(text, tensor); });
  write_list(text, "files", manifest.files,
             [&](const FileRecord& file) { write_file(text, file); });
  return text + format::sealed(checksum_of(std::as_bytes(std::span(text))));
}

}  // namespace dstrain::checkpoint
