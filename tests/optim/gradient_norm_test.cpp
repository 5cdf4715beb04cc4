#include "runtime/optim/gradient_norm.h"

#include <catch2/catch.hpp>

namespace optim = dstrain::optim;

TEST_CASE("clip_scale: only norms over the limit are scaled", "[optim][norm]") {
  CHECK(optim::clip_scale(0.5, 1.0) == 1.0);
  CHECK(optim::clip_scale(4.0, 0.0) == 1.0);
  CHECK(optim::clip_scale(4.0, 1.0) == Approx(0.25).epsilon(1e-6));
}

TEST_CASE("clip_scale: the norm counts for 1e-6 more", "[optim][norm]") {
  CHECK(optim::clip_scale(1e-6, 1e-6) == 0.5);
  CHECK(optim::clip_scale(3e-6, 1e-6) == Approx(0.25).epsilon(1e-12));
  CHECK(optim::clip_scale(1.0, 1.0) == 1.0 / (1.0 + 1e-6));
  CHECK(optim::clip_scale(0.0, 1.0) == 1.0);
}
