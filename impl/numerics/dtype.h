#pragma once
// The element types of buffers, as values for footprints and reports and as a trait of the C++ types.

#include <cstddef>
#include <cstdint>

#include "impl/numerics/bf16.h"
#include "impl/numerics/fp8.h"
#include "impl/numerics/host_device.h"

namespace gatherfuzz {

enum class DType : std::uint8_t { u8, i32, u64, f32, f64, bf16, e4m3, e8m0 };

inline constexpr int kNumDTypes = 8;

// Bytes an element takes.
GATHERFUZZ_HD constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
    case DType::e4m3:
    case DType::e8m0:
      return 1;
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::f32:
      return 4;
    case DType::u64:
    case DType::f64:
      return 8;
  }
  return 0;
}

// The enumerator's spelling, for messages.
GATHERFUZZ_HD constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::u8:
      return "u8";
    case DType::i32:
      return "i32";
    case DType::u64:
      return "u64";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
    case DType::e4m3:
      return "e4m3";
    case DType::e8m0:
      return "e8m0";
  }
  return "invalid";
}

// dtype_of<T>: the DType of a C++ element type; does not compile for any other type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<e4m3> {
  static constexpr DType value = DType::e4m3;
};
template <>
struct DTypeOf<e8m0> {
  static constexpr DType value = DType::e8m0;
};

template <typename T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace gatherfuzz
