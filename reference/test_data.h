// Seeded weights, batches and differences for the reference's tests. Same numbers with every compiler.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/formats.h"
#include "reference/shape.h"
#include "reference/trainer.h"

namespace gatherfuzz::reference::test {

// Uniform in (-limit, limit).
class Uniform {
 public:
  explicit Uniform(std::uint32_t seed) : engine_(seed) {}
  double operator()(double limit) { return limit * (static_cast<double>(engine_()) * 0x1p-31 - 1.0); }

 private:
  std::mt19937 engine_;
};

inline std::vector<double> random_values(std::size_t size, double limit, std::uint32_t seed) {
  Uniform uniform(seed);
  std::vector<double> values(size);
  for (double& value : values) value = uniform(limit);
  return values;
}

// bf16 values with the given standard deviation; norm gains 1.
inline std::vector<std::vector<float>> random_weights(const Shape& shape, double deviation,
                                                      std::uint32_t seed) {
  Uniform uniform(seed);
  std::vector<std::vector<float>> weights;
  for (const ParamShape& param : param_shapes(shape)) {
    weights.emplace_back(static_cast<std::size_t>(param.size()), 1.0f);
    if (param.rows == 1) continue;
    for (float& value : weights.back()) {
      value = round_to_bf16(static_cast<float>(uniform(deviation * std::sqrt(3.0))));
    }
  }
  return weights;
}

inline Batch random_batch(const Shape& shape, std::uint32_t seed) {
  std::mt19937 engine(seed);
  Batch batch;
  const auto vocab = static_cast<std::uint32_t>(shape.vocab_size);
  for (int t = 0; t < shape.tokens(); ++t) {
    batch.tokens.push_back(static_cast<std::int32_t>(engine() % vocab));
    batch.targets.push_back(static_cast<std::int32_t>(engine() % vocab));
  }
  return batch;
}

// |values - expected| / |expected|, L2.
template <typename A, typename B>
double relative_difference(const std::vector<A>& values, const std::vector<B>& expected) {
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(expected[i]);
    difference += std::pow(static_cast<double>(values[i]) - e, 2);
    size += e * e;
  }
  return std::sqrt(difference / size);
}

// A derivative measured by central differences at steps h and 2h. Truncation error shrinks fourfold from 2h
// to h, so it is at most |at_2h - at_h| (three times the estimate); roundoff of the two values is added.
struct Measured {
  double derivative, tolerance;
};
template <typename Function>
Measured central_difference(Function value_at, double h, double roundoff) {
  const double at_h = (value_at(h) - value_at(-h)) / (2 * h);
  const double at_2h = (value_at(2 * h) - value_at(-2 * h)) / (4 * h);
  return {at_h, std::fabs(at_2h - at_h) + roundoff / h};
}

}  // namespace gatherfuzz::reference::test
