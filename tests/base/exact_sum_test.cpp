#include "runtime/numeric/exact_sum.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"

using dstrain::ExactSum;

namespace {

double exact(const std::vector<double>& terms) {
  ExactSum sum;
  for (const double term : terms) sum.add(term);
  return sum.value();
}

}  // namespace

TEST_CASE("ExactSum: small sums are exact", "[base][exact_sum]") {
  CHECK(exact({}) == 0.0);
  CHECK(exact({0.0, 1.5, 2.25}) == 3.75);
  CHECK(exact({1e300, 1e300}) == 2e300);
  CHECK(exact({std::numeric_limits<double>::denorm_min()}) ==
        std::numeric_limits<double>::denorm_min());
  // What rounding loses one by one is still there in the end.
  std::vector<double> terms(1024, 0x1.0p-60);
  terms.push_back(1.0);
  CHECK(exact(terms) == 1.0 + 0x1.0p-50);
}

TEST_CASE("ExactSum: order and grouping do not matter", "[base][exact_sum]") {
  const auto seed = GENERATE(range(0, 20));
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::uniform_real_distribution<double> exponent(-200, 200);
  std::vector<double> terms(500);
  for (double& term : terms) term = std::exp2(exponent(random)) * (1 + exponent(random) / 1000);
  const double whole = exact(terms);
  std::shuffle(terms.begin(), terms.end(), random);
  ExactSum first;
  ExactSum second;
  const auto cut = static_cast<std::size_t>(seed * 25);
  for (std::size_t i = 0; i < terms.size(); ++i) (i < cut ? first : second).add(terms[i]);
  first.add(second);
  CHECK(first.value() == whole);
  long double reference = 0;
  std::sort(terms.begin(), terms.end());
  for (const double term : terms) reference += term;
  CHECK(whole == Catch::Approx(static_cast<double>(reference)).epsilon(1e-15));
}

TEST_CASE("ExactSum: digits add up as integers", "[base][exact_sum]") {
  const auto seed = GENERATE(range(0, 20));
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  std::uniform_real_distribution<double> exponent(-1000, 1000);
  ExactSum whole;
  ExactSum::Digits digits{};
  for (int part = 0; part < 50; ++part) {
    ExactSum sum;
    for (int i = 0; i < 10; ++i) sum.add(std::exp2(exponent(random)) * 1.999999999999999);
    whole.add(sum);
    sum.add_to(digits);
  }
  ExactSum again;
  again.add(digits);
  CHECK(std::memcmp(&again, &whole, sizeof(whole)) == 0);
  ExactSum bad;
  bad.add(std::numeric_limits<double>::infinity());
  bad.add_to(digits);
  again.add(digits);
  CHECK(std::isnan(again.value()));
}

TEST_CASE("ExactSum: a value that is not finite makes the sum not finite", "[base][exact_sum]") {
  CHECK(std::isnan(exact({1.0, std::numeric_limits<double>::infinity()})));
  CHECK(std::isnan(exact({std::numeric_limits<double>::quiet_NaN(), 1.0})));
}

TEST_CASE("ExactSum: a sum that is not finite makes a sum of sums not finite",
          "[base][exact_sum]") {
  ExactSum finite;
  finite.add(1.0);
  ExactSum infinite;
  infinite.add(std::numeric_limits<double>::infinity());
  ExactSum total = finite;
  total.add(infinite);
  CHECK(std::isnan(total.value()));
  total.add(finite);
  CHECK(std::isnan(total.value()));
  infinite.add(finite);
  CHECK(std::isnan(infinite.value()));
}
