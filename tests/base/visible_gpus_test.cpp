#include "runtime/os/visible_gpus.h"

#include "tests/support/catch.h"

using namespace dstrain;
using Entries = std::vector<std::string>;

TEST_CASE("Visible GPUs: a list shows numbers and UUIDs in its order", "[base]") {
  CHECK(visible_gpus("0", 1).value() == Entries{"0"});
  CHECK(visible_gpus("3, 0 ,2", 4).value() == Entries{"3", "0", "2"});
  CHECK(visible_gpus("GPU-8932f937,1,MIG-GPU-5/1/0", 2).value() ==
        Entries{"GPU-8932f937", "1", "MIG-GPU-5/1/0"});
  CHECK(visible_gpus("7", 0).value() == Entries{"7"});  // it is not known how many there are
}

TEST_CASE("Visible GPUs: an empty list and -1 hide all", "[base]") {
  const std::string list = GENERATE("", "-1", "-1,0", " -1");
  CHECK(visible_gpus(list, 2).value().empty());
  CHECK(hides_all_gpus(list));
  CHECK_FALSE(hides_all_gpus("0,-1"));
}

TEST_CASE("Visible GPUs: entries that CUDA would not accept are reported", "[base]") {
  using Catch::Matchers::ContainsSubstring;
  CHECK(visible_gpus("0,9", 2).error() ==
        "CUDA_VISIBLE_DEVICES=0,9: there is no GPU 9: 2 GPUs are there, 0 to 1; CUDA would also "
        "hide the GPUs after it");
  CHECK_THAT(visible_gpus("1", 1).error(), ContainsSubstring("one GPU is there, 0"));
  CHECK_THAT(visible_gpus("1,01", 2).error(), ContainsSubstring("GPU 1 is listed twice"));
  CHECK_THAT(visible_gpus("0,1,0", 2).error(), ContainsSubstring("GPU 0 is listed twice"));
  for (const char* list :
       {"0,-1", "all", "0,", ",0", "0;1", "0x1", "1.5", "99999999999", "gpu-1"}) {
    CAPTURE(list);
    CHECK_THAT(visible_gpus(list, 2).error(), ContainsSubstring("is not a GPU"));
  }
}
