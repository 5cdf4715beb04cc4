#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <span>
#include <vector>

#include "runtime/ops/activation.h"

/// Naive operations in double: the oracle of the ops and of the units.
namespace dstrain::reference {

using Values = std::vector<double>;

inline Values layer_norm(const Values& x, const Values& weight, const Values& bias, double eps) {
  const std::size_t columns = weight.size();
  Values y(x.size());
  for (std::size_t start = 0; start < x.size(); start += columns) {
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < columns; ++i) mean += x[start + i];
    mean /= static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i) variance += std::pow(x[start + i] - mean, 2);
    variance /= static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      y[start + i] = (x[start + i] - mean) / std::sqrt(variance + eps) * weight[i] + bias[i];
    }
  }
  return y;
}

inline double gelu(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

inline double activation(ops::Activation kind, double x) {
  switch (kind) {
    case ops::Activation::gelu_tanh:
      return gelu(x);
    case ops::Activation::gelu:
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case ops::Activation::quick_gelu:
      return x / (1 + std::exp(-1.702 * x));
    case ops::Activation::silu:
      return x / (1 + std::exp(-x));
    case ops::Activation::relu:
      return x > 0 ? x : 0;
  }
  return 0;
}

/// y (R, N) = x (R, K) w (K, N) + b (N).
inline Values linear(const Values& x, const Values& w, const Values& b) {
  const std::size_t n = b.size();
  const std::size_t k = w.size() / n;
  Values y(x.size() / k * n);
  for (std::size_t row = 0; row < x.size() / k; ++row) {
    for (std::size_t j = 0; j < n; ++j) y[row * n + j] = b[j];
    for (std::size_t i = 0; i < k; ++i) {
      for (std::size_t j = 0; j < n; ++j) y[row * n + j] += x[row * k + i] * w[i * n + j];
    }
  }
  return y;
}

struct AttentionSizes {
  std::size_t sequences;
  std::size_t tokens;
  std::size_t channels;
  std::size_t heads;
};

/// The multiplier of the probability of (sequence, head, query, key).
using Dropper = std::function<double(std::size_t, std::size_t, std::size_t, std::size_t)>;

inline Values attention(const Values& qkv, const AttentionSizes& s, const Dropper& drop = {}) {
  const std::size_t d = s.channels / s.heads;
  Values out(s.sequences * s.tokens * s.channels);
  Values p(s.tokens);
  const auto at = [&](std::size_t b, std::size_t t, std::size_t part, std::size_t column) {
    return qkv[(b * s.tokens + t) * 3 * s.channels + part * s.channels + column];
  };
  for (std::size_t index = 0; index < s.sequences * s.heads * s.tokens; ++index) {
    const std::size_t b = index / s.tokens / s.heads;
    const std::size_t h = index / s.tokens % s.heads;
    const std::size_t i = index % s.tokens;
    double sum = 0;
    for (std::size_t j = 0; j <= i; ++j) {
      double score = 0;
      for (std::size_t k = h * d; k < (h + 1) * d; ++k) score += at(b, i, 0, k) * at(b, j, 1, k);
      p[j] = std::exp(score / std::sqrt(static_cast<double>(d)));
      sum += p[j];
    }
    for (std::size_t j = 0; j <= i; ++j) {
      const double weight = p[j] / sum * (drop ? drop(b, h, i, j) : 1.0);
      for (std::size_t k = h * d; k < (h + 1) * d; ++k) {
        out[(b * s.tokens + i) * s.channels + k] += weight * at(b, j, 2, k);
      }
    }
  }
  return out;
}

inline double cross_entropy(std::span<const double> logits, std::int32_t label) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  return std::log(sum) - logits[static_cast<std::size_t>(label)];
}

}  // namespace dstrain::reference
