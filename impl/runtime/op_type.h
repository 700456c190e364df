// OpType: all that the runtimes and the tools know of a kind of op, derived once from its struct:
//
//   struct Scale {                      // kernels/scale.h
//     static constexpr const char* kName = "scale_gradients";
//     Update<real, Content::grad> values;
//     Coefficient factor;
//     void host(HostMemory& memory) const;          // the kernel on real numbers
//     void symbolic(SymbolicMemory& memory) const;  // optional: by default every output is a hash of all
//     inputs
//   };
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "impl/runtime/fields.h"
#include "impl/runtime/host/memory.h"
#include "impl/runtime/operand.h"
#include "impl/runtime/symbolic/memory.h"
#include "impl/runtime/symbolic/rules.h"

namespace gatherfuzz {

// Where an op was launched in the source.
struct Site {
  const char* file = "";
  int line = 0;
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

// What the type of one operand says.
struct OperandField {
  uint16_t offset = 0;  // in the op struct
  Mode mode = Mode::read;
  Content content = Content::any;
  Plane plane = Plane::none;
  bool consumes = false;
};

inline bool reads_weight(const OperandField& field) {
  return field.mode == Mode::read && field.content == Content::weights;
}

struct OpType {
  const char* name = "";
  uint32_t size = 0;
  std::span<const OperandField> operands;
  std::span<const uint16_t> coefficients;  // offsets of Coefficient members
  void (*host)(const void* op, HostMemory& memory) = nullptr;
  void (*symbolic)(const void* op, SymbolicMemory& memory) = nullptr;
  // Collectives instead run once for all ranks: ops[r] and memories[r] are rank r's.
  void (*host_collective)(std::span<const void* const> ops, std::span<HostMemory> memories) = nullptr;
  void (*symbolic_collective)(std::span<const void* const> ops, std::span<SymbolicMemory> memories) = nullptr;
  bool composite = false;      // the op is a CompositeOp (composite.h)
  bool reads_weights = false;  // at least one operand reads a weight
  bool accumulates = false;    // at least one operand is added to

  bool collective() const { return host_collective != nullptr; }
};

namespace op_type_detail {

template <class T>
concept IsOperand = std::is_base_of_v<Operand, T>;

template <class Op>
constexpr std::size_t count_operands() {
  std::size_t n = 0;
  Op op{};
  for_each_field(op, [&n](auto& field) { n += IsOperand<std::remove_cvref_t<decltype(field)>> ? 1 : 0; });
  return n;
}

template <class Op>
std::span<const OperandField> operand_fields() {
  static const auto fields = [] {
    std::array<OperandField, count_operands<Op>() + 1> list{};
    static const Op op{};
    std::size_t n = 0;
    for_each_field(op, [&](const auto& field) {
      using F = std::remove_cvref_t<decltype(field)>;
      if constexpr (IsOperand<F>) {
        const auto offset =
            reinterpret_cast<const std::byte*>(&field) - reinterpret_cast<const std::byte*>(&op);
        list[n++] = {static_cast<uint16_t>(offset), F::kMode, F::kContent, F::kPlane, F::kConsumes};
      }
    });
    return list;
  }();
  return {fields.data(), count_operands<Op>()};
}

template <class Op>
std::span<const uint16_t> coefficient_offsets() {
  static const auto offsets = [] {
    std::array<uint16_t, kFieldCount<Op> + 1> list{};
    static const Op op{};
    std::size_t n = 0;
    for_each_field(op, [&](const auto& field) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, Coefficient>)
        list[n++] = static_cast<uint16_t>(reinterpret_cast<const std::byte*>(&field) -
                                          reinterpret_cast<const std::byte*>(&op));
    });
    list[kFieldCount<Op>] = static_cast<uint16_t>(n);
    return list;
  }();
  return {offsets.data(), offsets[kFieldCount<Op>]};
}

template <class Op>
OpType make() {
  static_assert(std::is_trivially_copyable_v<Op>, "ops are copied as bytes");
  OpType type;
  type.name = Op::kName;
  type.size = sizeof(Op);
  type.operands = operand_fields<Op>();
  type.coefficients = coefficient_offsets<Op>();
  for (const OperandField& field : type.operands) {
    type.reads_weights = type.reads_weights || reads_weight(field);
    type.accumulates = type.accumulates || field.mode == Mode::accumulate;
  }
  if constexpr (requires { Op::host_collective; }) {
    type.host_collective = &Op::host_collective;
    type.symbolic_collective = &Op::symbolic_collective;
  } else {
    type.host = [](const void* op, HostMemory& memory) { static_cast<const Op*>(op)->host(memory); };
    type.symbolic = [](const void* op, SymbolicMemory& memory) {
      if constexpr (requires(const Op& o) { o.symbolic(memory); }) {
        static_cast<const Op*>(op)->symbolic(memory);
      } else {
        hash_all_inputs(*static_cast<const Op*>(op), memory);
      }
    };
  }
  return type;
}

}  // namespace op_type_detail

// Made before main; nothing launches ops earlier.
template <class Op>
inline const OpType kOpType = op_type_detail::make<Op>();

template <class Op>
const OpType& op_type() {
  return kOpType<Op>;
}

}  // namespace gatherfuzz
