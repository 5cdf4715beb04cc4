#pragma once
// Catch2 under the names of version 3. Debian 12 has version 2.13, whose names are given those.

#if __has_include(<catch2/catch_all.hpp>)

#include <catch2/catch_all.hpp>

#else

#define CATCH_CONFIG_EXTERNAL_INTERFACES  // listeners
#include <string>

#include <catch2/catch.hpp>

namespace Catch {

using Detail::Approx;
using EventListenerBase = TestEventListenerBase;

namespace Matchers {
inline auto ContainsSubstring(const std::string& text) {
  return Contains(text);
}
}  // namespace Matchers

}  // namespace Catch

#endif
