// The conversions against those that CUDA's headers compile for the host; no GPU is needed, only the headers.

#include <gtest/gtest.h>

#if __has_include(<cuda_fp8.h>) && __has_include(<cuda_bf16.h>)

#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include <cmath>

#include "impl/numerics/mx.h"

namespace gatherfuzz {
namespace {

// Every upper half of a float with lower halves around each rounding decision of both formats.
TEST(CudaHeaders, FloatToE4m3AndBf16) {
  int compared = 0;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      const float value = __builtin_bit_cast(float, upper << 16 | lower);
      const __nv_bfloat16_raw bf16_raw = static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(value));
      if (std::isnan(value)) {
        // CUDA makes all NaN one NaN; ours keeps the sign, and the payload of a bf16.
        ASSERT_EQ(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3), 0x7F);
        ASSERT_EQ(to_e4m3_saturate(value).bits & 0x7F, 0x7F);
        ASSERT_TRUE(std::isnan(to_float(to_bf16(value))) && std::isnan(to_float(bf16{bf16_raw.x})));
      } else {
        ASSERT_EQ(to_e4m3_saturate(value).bits, __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3))
            << value;
        ASSERT_EQ(to_bf16(value).bits, bf16_raw.x) << value;
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6 * 0x10000);
}

TEST(CudaHeaders, EveryE4m3CodeToFloat) {
  int compared = 0;
  for (int code = 0; code < 256; ++code) {
    const float found = to_float(e4m3{static_cast<std::uint8_t>(code)});
    const __half_raw half = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), __NV_E4M3);
    const float expected = __half2float(__half(half));
    ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected))) << code;
    ++compared;
  }
  EXPECT_EQ(compared, 256);
}

TEST(CudaHeaders, EveryE8m0CodeToFloat) {
  int compared = 0;
  for (int code = 0; code < 256; ++code) {
    const __nv_bfloat16_raw raw = __nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(code));
    const float expected = to_float(bf16{raw.x});
    const float found = to_float(e8m0{static_cast<std::uint8_t>(code)});
    ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected))) << code;
    ++compared;
  }
  EXPECT_EQ(compared, 256);
}

// amax/448 in float is no power of two unless it is exactly one: a bf16 amax is 2^-8 of it or more away from
// the next step, the quotient's rounding 2^-24. So rounding the quotient up to a power of two is `up`, and
// rounding amax/256 down is `floor`.
TEST(CudaHeaders, ScaleOfEveryAmax) {
  int compared = 0;
  for (int bits = 0; bits <= 0x7FFF; ++bits) {
    const bf16 amax{static_cast<std::uint16_t>(bits)};
    const float value = to_float(amax);
    ASSERT_EQ(mx_scale(mx_magnitude(amax), ScaleRounding::up).bits,
              __nv_cvt_float_to_e8m0(value / 448.0f, __NV_SATFINITE, cudaRoundPosInf))
        << bits;
    ASSERT_EQ(mx_scale(mx_magnitude(amax), ScaleRounding::floor).bits,
              __nv_cvt_float_to_e8m0(value / 256.0f, __NV_SATFINITE, cudaRoundZero))
        << bits;
    ++compared;
  }
  EXPECT_EQ(compared, 0x8000);
}

}  // namespace
}  // namespace gatherfuzz

#else

TEST(CudaHeaders, NotFound) {
  GTEST_SKIP()
      << "cuda_fp8.h and cuda_bf16.h are not on the include path: nothing compared with CUDA's conversions";
}

#endif
