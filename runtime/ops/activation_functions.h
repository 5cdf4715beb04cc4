#pragma once
#include "runtime/ops/activation.h"
#include "runtime/ops/fast_exp.h"

namespace dstrain::ops {

// The functions of Activation, for the kernels of any device, which supplies its own arithmetic.

struct CpuArithmetic {
  static constexpr float exp2(float x) { return fast_exp2(x); }
  static constexpr float reciprocal(float x) { return 1.0F / x; }
};

/// 1 / (1 + 2^power).
template <class Arithmetic>
constexpr float logistic(float power) {
  return Arithmetic::reciprocal(1.0F + Arithmetic::exp2(power < 126.0F ? power : 126.0F));
}

/// A function's value and derivative at one point.
struct Point {
  float value;
  float slope;
};

template <class Arithmetic>
struct GeluTanh {
  static constexpr float cubic = 0.044715F;
  static constexpr float twice_root = 1.59576912F;  // 2 sqrt(2 / pi)
  /// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), without the cancellation that tanh has near -1.
  static constexpr float gate(float x) {
    constexpr float linear_term = -twice_root * log2_e;
    constexpr float cubic_term = linear_term * cubic;
    return logistic<Arithmetic>(x * (linear_term + cubic_term * (x * x)));
  }
  static constexpr float value(float x) { return x * gate(x); }
  static constexpr Point point(float x) {
    const float s = gate(x);
    const float slope = twice_root + 3.0F * twice_root * cubic * (x * x);
    return {x * s, s + x * s * (1.0F - s) * slope};
  }
};

template <class Arithmetic>
struct Gelu {
  static constexpr float root_half = 0.707106781F;
  static constexpr float density = 0.398942280F;  // 1 / sqrt(2 pi)
  /// e^(-x^2 / 2).
  static constexpr float bell(float x) {
    const float power = -0.5F * log2_e * (x * x);
    return Arithmetic::exp2(power < -126.5F ? -126.5F : power);
  }
  /// Phi(x): Abramowitz & Stegun 1964, 7.1.26, to 1.5e-7 / 2.
  static constexpr float distribution(float x, float bell_of_x) {
    const float t = Arithmetic::reciprocal(1.0F + 0.3275911F * root_half * (x < 0 ? -x : x));
    float p = t * 1.061405429F - 1.453152027F;
    p = p * t + 1.421413741F;
    p = p * t - 0.284496736F;
    p = p * t + 0.254829592F;
    const float tail = 0.5F * p * t * bell_of_x;
    return x < 0 ? tail : 1.0F - tail;
  }
  static constexpr float value(float x) { return x * distribution(x, bell(x)); }
  static constexpr Point point(float x) {
    const float b = bell(x);
    const float phi = distribution(x, b);
    return {x * phi, phi + x * (density * b)};
  }
};

/// x s(factor x).
template <int thousandths, class Arithmetic>
struct Sigmoid {
  static constexpr float factor = static_cast<float>(thousandths) / 1000.0F;
  static constexpr float gate(float x) { return logistic<Arithmetic>(x * (-factor * log2_e)); }
  static constexpr float value(float x) { return x * gate(x); }
  static constexpr Point point(float x) {
    const float s = gate(x);
    return {x * s, s + factor * (x * s * (1.0F - s))};
  }
};

/// NaN stays NaN, as in PyTorch.
struct Relu {
  static constexpr float value(float x) { return x <= 0 ? 0.0F : x; }
  static constexpr Point point(float x) { return {value(x), x <= 0 ? 0.0F : 1.0F}; }
};

/// Calls `body` with a value of the type of a kind.
template <class Arithmetic, class Body>
void with_function(Activation kind, const Body& body) {
  switch (kind) {
    case Activation::gelu_tanh:
      return body(GeluTanh<Arithmetic>{});
    case Activation::gelu:
      return body(Gelu<Arithmetic>{});
    case Activation::quick_gelu:
      return body(Sigmoid<1702, Arithmetic>{});
    case Activation::silu:
      return body(Sigmoid<1000, Arithmetic>{});
    case Activation::relu:
      return body(Relu{});
  }
}

}  // namespace dstrain::ops
