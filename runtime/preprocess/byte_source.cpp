#include "runtime/preprocess/byte_source.h"

#include "runtime/base/error.h"
#include "runtime/os/plug_in.h"
#include "runtime/preprocess/plain_bytes.h"

namespace dstrain::preprocess {

std::unique_ptr<ByteSource> open_bytes(const InputFile& file) {
  if (file.compression == Compression::none) return std::make_unique<PlainBytes>(file.path);
  constexpr PlugIn plug_in{.file = "libdstrain_decompress.so"};
  const Result<void*> opened = open_plug_in(plug_in);
  if (!opened.ok()) {
    fail(ErrorCode::config,
         "cannot load {}, which reads compressed files: {}; it belongs beside the program, and "
         "needs its libraries: apt-get install zlib1g libzstd1",
         plug_in.file, opened.error());
  }
  void* const symbol = plug_in_symbol(plug_in, opened.value(), open_compressed_bytes_symbol);
  return std::unique_ptr<ByteSource>(reinterpret_cast<OpenCompressedBytes*>(symbol)(&file));
}

}  // namespace dstrain::preprocess
