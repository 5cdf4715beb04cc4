#include "runtime/base/error.h"
#include "runtime/os/plug_in.h"
#include "runtime/tokenizer/plug_in.h"

namespace dstrain::tokenizer {

const PlugInFunctions& plug_in_functions() {
  constexpr PlugIn plug_in{.file = "libdstrain_tokenizers.so"};
  const Result<void*> opened = open_plug_in(plug_in);
  if (!opened.ok()) {
    fail(ErrorCode::config,
         "cannot load {}, which reads tokenizers: {}; it belongs beside the program, and this host "
         "needs its libraries: apt-get install libicu" DSTRAIN_ICU_MAJOR
         " libpcre2-8-0 libsentencepiece0",
         plug_in.file, opened.error());
  }
  return *static_cast<const PlugInFunctions*>(
      plug_in_symbol(plug_in, opened.value(), plug_in_functions_symbol));
}

std::unique_ptr<BpeTrainer> make_bpe_trainer() {
  return plug_in_functions().make_bpe_trainer();
}

}  // namespace dstrain::tokenizer
