// The whole model: gradients by finite differences, parameter order, which plane is read where.
#include "reference/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "reference/test_data.h"

namespace gatherfuzz::reference {
namespace {

const Shape kMxShape{2, 32, 32, 2, 16, 40, 2};

TEST(Shape, ParamsInRegistrationOrder) {
  const Shape shape{2, 8, 12, 2, 4, 10, 1};
  const auto params = param_shapes(shape);
  ASSERT_EQ(params.size(), 15u);
  EXPECT_EQ(params[kEmbedding].name, "embedding");
  const LayerParams layer = layer_params(1);
  const auto expect = [&](int index, const std::string& name, int rows, int cols, bool mx) {
    const ParamShape& param = params[static_cast<std::size_t>(index)];
    EXPECT_EQ(param.name, name);
    EXPECT_EQ(param.rows, rows) << name;
    EXPECT_EQ(param.cols, cols) << name;
    EXPECT_EQ(param.mx, mx) << name;
  };
  expect(layer.norm1, "layers.1.norm1", 1, 8, false);
  expect(layer.qkv, "layers.1.qkv", 24, 8, true);
  expect(layer.proj, "layers.1.proj", 8, 8, true);
  expect(layer.norm2, "layers.1.norm2", 1, 8, false);
  expect(layer.fc1, "layers.1.fc1", 24, 8, true);
  expect(layer.fc2, "layers.1.fc2", 8, 12, true);
  expect(final_norm_index(shape), "final_norm", 1, 8, false);
  expect(output_index(shape), "output", 10, 8, false);
}

TEST(Shape, ATiedOutputIsTheEmbedding) {
  Shape shape{2, 8, 12, 2, 4, 10, 1};
  const auto untied = param_shapes(shape);
  shape.tied_embeddings = true;
  const auto tied = param_shapes(shape);
  ASSERT_EQ(tied.size() + 1, untied.size());
  for (std::size_t i = 0; i < tied.size(); ++i) EXPECT_EQ(tied[i].name, untied[i].name);
  EXPECT_EQ(tied.back().name, "final_norm");
  EXPECT_EQ(output_index(shape), kEmbedding);
}

// Returns how many derivatives were compared.
int compare_with_finite_differences(const Shape& shape) {
  const WideModel model(shape, Precision::fp32, ScaleRounding::up);
  const Batch batch = test::random_batch(shape, 5);
  auto weights = test::random_weights(shape, 0.5, 6);
  for (auto& weight : weights) {
    for (float& value : weight) value = std::round(value * 0x1p12f) * 0x1p-12f;  // so that steps are exact
  }
  const auto result = model.forward_backward(model.prepare(weights), batch.tokens, batch.targets, 1.0);
  constexpr double kStep = 0x1p-11;
  const double roundoff = 1000 * 0x1p-53 * result.loss;  // some hundred terms along the path
  int checked = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    double largest = 0;
    std::vector<double> gradient(weights[i].size());
    for (const std::vector<double>* summand : result.summands(i))
      for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] += (*summand)[j];
    for (const double g : gradient) largest = std::max(largest, std::fabs(g));
    for (std::size_t j = 0; j < weights[i].size(); ++j) {
      const float at = weights[i][j];
      const auto measured = test::central_difference(
          [&](double step) {
            weights[i][j] = at + static_cast<float>(step);
            return model.forward(model.prepare(weights), batch.tokens, batch.targets);
          },
          kStep, roundoff);
      weights[i][j] = at;
      EXPECT_NEAR(gradient[j], measured.derivative, measured.tolerance) << param_shapes(shape)[i].name;
      EXPECT_LT(measured.tolerance, 1e-3 * largest) << "too loose to show an error";
      ++checked;
    }
  }
  return checked;
}

TEST(Model, EveryWeightGradientIsTheLossDerivative) {
  constexpr int kOfLayers = 2 * (2 * 8 + 24 * 8 + 8 * 8 + 24 * 8 + 8 * 12);
  Shape shape{2, 8, 12, 2, 4, 10, 2};
  EXPECT_EQ(compare_with_finite_differences(shape), 10 * 8 * 2 + 8 + kOfLayers);
  shape.tied_embeddings = true;
  EXPECT_EQ(compare_with_finite_differences(shape), 10 * 8 + 8 + kOfLayers);
}

TEST(Model, MxWeightsAreReadRowwiseInForwardAndColumnwiseInDgrad) {
  const Model model(kMxShape, Precision::mxfp8, ScaleRounding::up);
  const Batch batch = test::random_batch(kMxShape, 1);
  const auto prepared = model.prepare(test::random_weights(kMxShape, 0.1, 2));
  const auto expected = model.forward_backward(prepared, batch.tokens, batch.targets, 1.0f);
  int compared = 0;
  for (int layer = 0; layer < kMxShape.num_layers; ++layer) {
    const LayerParams params = layer_params(layer);
    for (const int index : {params.qkv, params.proj, params.fc1, params.fc2}) {
      Prepared<float> columnwise_zero = prepared;
      for (float& value : columnwise_zero[static_cast<std::size_t>(index)].values) value = 0;
      const auto result = model.forward_backward(columnwise_zero, batch.tokens, batch.targets, 1.0f);
      EXPECT_EQ(result.loss, expected.loss);
      EXPECT_NE(result.gradients[kEmbedding], expected.gradients[kEmbedding]);
      // Its own gradient reads no weight plane.
      EXPECT_EQ(result.gradients[static_cast<std::size_t>(index)],
                expected.gradients[static_cast<std::size_t>(index)]);
      Prepared<float> rowwise_zero = prepared;
      for (float& value : rowwise_zero[static_cast<std::size_t>(index)].transposed) value = 0;
      EXPECT_NE(model.forward(rowwise_zero, batch.tokens, batch.targets), expected.loss);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 8);
}

TEST(Model, PreparedPlanesAreTheQuantizedWeights) {
  const auto weights = test::random_weights(kMxShape, 0.1, 2);
  const auto prepared = Model(kMxShape, Precision::mxfp8, ScaleRounding::floor).prepare(weights);
  const std::size_t fc1 = static_cast<std::size_t>(layer_params(0).fc1);
  EXPECT_EQ(prepared[fc1].values, quantize_columnwise(weights[fc1], 64, 32, ScaleRounding::floor).values);
  EXPECT_EQ(transpose(prepared[fc1].transposed, 32, 64),
            quantize_rowwise(weights[fc1], 64, 32, ScaleRounding::floor).values);
  EXPECT_NE(prepared[fc1].values, weights[fc1]);
  EXPECT_EQ(prepared.back().values, weights.back()) << "the output layer is never MX";
}

TEST(Model, DoubledCoefficientDoublesGradientsExactly) {
  const Batch batch = test::random_batch(kMxShape, 1);
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::mxfp8}) {
    const Model model(kMxShape, precision, ScaleRounding::up);
    const auto prepared = model.prepare(test::random_weights(kMxShape, 0.1, 2));
    const auto once = model.forward_backward(prepared, batch.tokens, batch.targets, 1.0f);
    const auto twice = model.forward_backward(prepared, batch.tokens, batch.targets, 2.0f);
    EXPECT_EQ(once.loss, twice.loss);
    EXPECT_EQ(once.loss, model.forward(prepared, batch.tokens, batch.targets));
    for (std::size_t i = 0; i < once.gradients.size(); ++i) {
      ASSERT_EQ(twice.gradients[i].size(), once.gradients[i].size());
      for (std::size_t j = 0; j < once.gradients[i].size(); ++j) {
        ASSERT_EQ(twice.gradients[i][j], 2.0f * once.gradients[i][j]);
      }
    }
  }
}

TEST(Model, RefusesShapesItCannotCompute) {
  EXPECT_THROW(Model(Shape{1, 32, 32, 3, 32, 8, 1}, Precision::fp32, ScaleRounding::up),
               std::invalid_argument);
  EXPECT_THROW(Model(Shape{1, 32, 48, 2, 32, 8, 1}, Precision::mxfp8, ScaleRounding::up),
               std::invalid_argument);
  EXPECT_THROW(Model(Shape{1, 32, 32, 2, 24, 8, 1}, Precision::mxfp8, ScaleRounding::up),
               std::invalid_argument);
  EXPECT_NO_THROW(Model(Shape{1, 32, 48, 2, 24, 8, 1}, Precision::bf16, ScaleRounding::up));
}

}  // namespace
}  // namespace gatherfuzz::reference
