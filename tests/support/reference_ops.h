#pragma once
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <span>
#include <vector>

#include "runtime/ops/activation.h"
#include "runtime/ops/attention.h"

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

inline Values rms_norm(const Values& x, const Values& weight, double eps) {
  const std::size_t columns = weight.size();
  Values y(x.size());
  for (std::size_t start = 0; start < x.size(); start += columns) {
    double square = 0;
    for (std::size_t i = 0; i < columns; ++i) square += x[start + i] * x[start + i];
    const double rstd = 1 / std::sqrt(square / static_cast<double>(columns) + eps);
    for (std::size_t i = 0; i < columns; ++i) y[start + i] = x[start + i] * rstd * weight[i];
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

/// The multiplier of the probability of (sequence, head, query, key).
using Dropper = std::function<double(std::size_t, std::size_t, std::size_t, std::size_t)>;

/// What attention is to do; see ops/attention.h.
struct Attention {
  ops::AttentionSizes sizes{};
  ops::AttentionRule rule{};
  std::vector<std::int32_t> key_counts{};  ///< or empty
  std::vector<std::int32_t> first_keys{};  ///< (B, T), or empty
  Values bias{};                           ///< (buckets, H), or empty
  Dropper drop{};

  [[nodiscard]] bool sees(std::int64_t b, std::int64_t query, std::int64_t key) const {
    const std::int64_t count =
        key_counts.empty() ? sizes.keys : key_counts[static_cast<std::size_t>(b)];
    if (key >= count) return false;
    if (rule.causal && key > query) return false;
    if (!first_keys.empty() && key < first_keys[static_cast<std::size_t>(b * sizes.tokens + query)])
      return false;
    return rule.window == 0 || key > query - rule.window;
  }
  [[nodiscard]] double bias_of(std::int64_t head, std::int64_t query, std::int64_t key) const {
    if (bias.empty()) return 0;
    const std::int64_t row = rule.buckets.row_of(key - query);
    return bias[static_cast<std::size_t>(row * sizes.heads + head)];
  }
};

/// Rows (rows, heads D) with each head turned by its position within `length` rows.
inline Values turned(Values rows,
                     const ops::Rotary& rotary,
                     std::int64_t head_size,
                     std::int64_t columns,
                     std::int64_t length) {
  const std::int64_t half = rotary.dims / 2;
  for (std::int64_t i = 0; i < std::ssize(rows); i += head_size) {
    const auto position = static_cast<float>(i / columns % length);
    for (std::int64_t j = 0; j < half; ++j) {
      const double angle =
          static_cast<double>(position * rotary.frequencies[static_cast<std::size_t>(j)]);
      const double c = std::cos(angle) * static_cast<double>(rotary.magnitude);
      const double s = std::sin(angle) * static_cast<double>(rotary.magnitude);
      double& low = rows[static_cast<std::size_t>(i + j)];
      double& high = rows[static_cast<std::size_t>(i + j + half)];
      const double before = low;
      low = low * c - high * s;
      high = high * c + before * s;
    }
  }
  return rows;
}

/// (B T, H D) of queries (B T, H D), keys and values (B S, K D).
inline Values attention(const Attention& a,
                        const Values& queries,
                        const Values& keys,
                        const Values& values) {
  const auto [B, T, S, H, K, D] = a.sizes;
  const Values q = turned(queries, a.rule.rotary, D, H * D, T);
  const Values k = turned(keys, a.rule.rotary, D, K * D, S);
  Values out(q.size());
  const auto at = [](std::int64_t row, std::int64_t heads, std::int64_t head, std::int64_t size) {
    return static_cast<std::size_t>((row * heads + head) * size);
  };
  for (std::int64_t index = 0; index < B * H * T; ++index) {
    const std::int64_t b = index / T / H;
    const std::int64_t h = index / T % H;
    const std::int64_t i = index % T;
    const std::size_t query = at(b * T + i, H, h, D);
    Values p(static_cast<std::size_t>(S));
    double sum = 0;
    for (std::int64_t j = 0; j < S; ++j) {
      if (!a.sees(b, i, j)) continue;
      const std::size_t key = at(b * S + j, K, h / (H / K), D);
      double score = 0;
      for (std::size_t c = 0; c < static_cast<std::size_t>(D); ++c)
        score += q[query + c] * k[key + c];
      score = score / static_cast<double>(a.rule.divisor) + a.bias_of(h, i, j);
      sum += p[static_cast<std::size_t>(j)] = std::exp(score);
    }
    for (std::int64_t j = 0; j < S; ++j) {
      if (!a.sees(b, i, j)) continue;
      const auto z = [](std::int64_t n) {
        return static_cast<std::size_t>(n);
      };
      const double weight = p[z(j)] / sum * (a.drop ? a.drop(z(b), z(h), z(i), z(j)) : 1.0);
      const std::size_t key = at(b * S + j, K, h / (H / K), D);
      for (std::size_t c = 0; c < z(D); ++c) out[query + c] += weight * values[key + c];
    }
  }
  return out;
}

/// Columns [first, first + count) of a matrix with `columns`.
inline Values columns_of(const Values& matrix,
                         std::int64_t columns,
                         std::int64_t first,
                         std::int64_t count) {
  Values part;
  for (std::int64_t row = 0; row < std::ssize(matrix) / columns; ++row) {
    const auto begin = matrix.begin() + row * columns + first;
    part.insert(part.end(), begin, begin + count);
  }
  return part;
}

/// Of queries, keys and values that are packed in rows.
inline Values packed_attention(const Attention& a, const Values& packed) {
  const std::int64_t queries = a.sizes.heads * a.sizes.head_size;
  const std::int64_t keys = a.sizes.kv_heads * a.sizes.head_size;
  const std::int64_t columns = queries + 2 * keys;
  return attention(a, columns_of(packed, columns, 0, queries),
                   columns_of(packed, columns, queries, keys),
                   columns_of(packed, columns, queries + keys, keys));
}

inline double cross_entropy(std::span<const double> logits, std::int32_t label) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  return std::log(sum) - logits[static_cast<std::size_t>(label)];
}

}  // namespace dstrain::reference
