#pragma once
#include "runtime/preprocess/byte_source.h"

namespace dstrain::preprocess {

/// What the plug-in libdstrain_decompress.so offers: the decompressed bytes of a file that is
/// compressed, for the caller to delete. It and the program are built together.
using OpenCompressedBytes = ByteSource*(const InputFile* file);
inline constexpr const char* open_compressed_bytes_symbol = "dstrain_open_compressed_bytes_1";

}  // namespace dstrain::preprocess
