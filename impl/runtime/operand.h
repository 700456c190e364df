// Operands: what one op reads and writes, as typed byte ranges. An op is a plain struct of operands and
// scalars; its footprint follows from the operand types (op_type.h), so it cannot be forgotten.
#pragma once

#include <cstdint>
#include <type_traits>

#include "impl/numerics/dtype.h"

namespace gatherfuzz {

// How an op touches a range. `accumulate` adds to what is there; `update` rewrites what it also reads.
enum class Mode : uint8_t { read, write, update, accumulate };

// What a write leaves behind, and what a read needs to find.
enum class Content : uint8_t {
  any,
  zero,
  staged,
  gathered,
  weights,
  grad,
  reduced,
  spent,
  main_param,
  moment,
  batch,
  activation,
  scalar
};

// Which copy of a weight an operand names. `whole` is a bf16 or FP32 weight.
enum class Plane : uint8_t { none, whole, rowwise, rowwise_scale, columnwise, columnwise_scale };

using BufferId = uint32_t;  // per rank; 0 is no buffer

// A byte range of one buffer of the executing rank. `tag` names a parameter or bucket (0: none, otherwise
// index + 1).
struct Operand {
  BufferId buffer = 0;
  uint32_t begin = 0;
  uint32_t bytes = 0;
  uint16_t tag = 0;
  DType dtype = DType::u8;

  uint32_t end() const { return begin + bytes; }
  uint32_t count() const { return bytes / static_cast<uint32_t>(size_of(dtype)); }
  bool empty() const { return bytes == 0; }
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Element type of operands that are bf16 or FP32, as the recipe says.
struct real {};
// Element type of operands whose bytes are moved and not interpreted.
struct raw {};

// A typed piece of a buffer, in elements.
template <class T>
struct View : Operand {
  View() = default;
  explicit View(const Operand& operand) : Operand(operand) {}
  template <class U>
  requires((std::is_same_v<T, real> && (std::is_same_v<U, float> || std::is_same_v<U, bf16>)) ||
           (std::is_same_v<T, raw> && !std::is_same_v<U, raw>)) View(const View<U>& other)
      : Operand(other) {}

  View slice(uint32_t first, uint32_t n) const {
    View piece = *this;
    const auto size = static_cast<uint32_t>(size_of(dtype));
    piece.begin = begin + first * size;
    piece.bytes = n * size;
    return piece;
  }
  View tagged(uint32_t index) const {
    View view = *this;
    view.tag = static_cast<uint16_t>(index + 1);
    return view;
  }
};

template <class T>
View<T> make_view(BufferId buffer, uint32_t first_byte, uint32_t count) {
  View<T> view;
  view.buffer = buffer;
  view.begin = first_byte;
  view.bytes = count * static_cast<uint32_t>(sizeof(T));
  view.dtype = dtype_of<T>;
  return view;
}

// A view whose dtype (float or bf16) is known only at run time.
inline View<real> make_real_view(BufferId buffer, uint32_t first_byte, uint32_t count, DType dtype) {
  View<real> view;
  view.buffer = buffer;
  view.begin = first_byte;
  view.bytes = count * static_cast<uint32_t>(size_of(dtype));
  view.dtype = dtype;
  return view;
}

// One operand of an op. M: mode; C: content needed (read) or left (write); P: plane of a weight;
// Consumes: the read uses the content up (a reduced gradient is read by one optimizer step).
template <class T, Mode M, Content C, Plane P = Plane::none, bool Consumes = false>
struct OperandOf : Operand {
  static constexpr Mode kMode = M;
  static constexpr Content kContent = C;
  static constexpr Plane kPlane = P;
  static constexpr bool kConsumes = Consumes;

  OperandOf() = default;
  template <class U>
  requires std::is_convertible_v<View<U>, View<T>> OperandOf(const View<U>& view) : Operand(view) {}
};

template <class T, Content needs = Content::any>
using Read = OperandOf<T, Mode::read, needs>;
template <class T, Content needs>
using Consume = OperandOf<T, Mode::read, needs, Plane::none, true>;
template <class T, Plane plane>
using Weight = OperandOf<T, Mode::read, Content::weights, plane>;
template <class T, Content leaves = Content::activation, Plane plane = Plane::none>
using Write = OperandOf<T, Mode::write, leaves, plane>;
template <class T, Content leaves = Content::activation>
using Update = OperandOf<T, Mode::update, leaves>;
template <class T>
using Accumulate = OperandOf<T, Mode::accumulate, Content::grad>;

// A factor that an op multiplies with; a type of its own, so that tools can find it in any op.
struct Coefficient {
  float value = 1.0f;
};

}  // namespace gatherfuzz
