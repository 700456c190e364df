// A composite: a run of ops recorded once and launched as one op with the union of their footprints. The
// coarse model is the layer code recorded this way; the fine model launches the same ops one by one.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "impl/runtime/error.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

struct Access {
  Operand operand;
  OperandField field;
};

struct Composite {
  struct Part {
    const OpType* type = nullptr;
    uint32_t offset = 0;  // of the op in `bytes`
  };
  OpType type;  // named; composite == true
  std::vector<Part> parts;
  std::vector<std::max_align_t> storage;
  std::vector<Access> accesses;  // reads of what no part wrote before, then writes, then accumulations
  uint64_t coefficients = 0;     // a hash of all factors that parts multiply with

  const std::byte* op(const Part& part) const {
    return reinterpret_cast<const std::byte*>(storage.data()) + part.offset;
  }
};

struct CompositeOp {
  const Composite* body = nullptr;
};

// Receives the ops of layer code; either a stream of a runtime or a recorder.
class OpSink {
 public:
  virtual ~OpSink() = default;
  template <class Op>
  void launch(const Op& op, Site site = Site::here()) {
    submit(op_type<Op>(), &op, site);
  }
  virtual void submit(const OpType& type, const void* op, Site site) = 0;
};

class CompositeRecorder : public OpSink {
 public:
  // `name` must be a string literal: it names the composite's op type.
  explicit CompositeRecorder(const char* name);
  void submit(const OpType& type, const void* op, Site site) override;
  std::unique_ptr<Composite> finish();

 private:
  void add_access(const Access& access);

  std::unique_ptr<Composite> composite_;
};

// Calls f(operand, field) for every access of an op, composite or not.
template <class F>
void for_each_access(const OpType& type, const void* op, F&& f) {
  if (type.composite) {
    for (const Access& access : static_cast<const CompositeOp*>(op)->body->accesses)
      f(access.operand, access.field);
    return;
  }
  for (const OperandField& field : type.operands) {
    const auto& operand = *reinterpret_cast<const Operand*>(static_cast<const std::byte*>(op) + field.offset);
    if (!operand.empty()) f(operand, field);
  }
}

}  // namespace gatherfuzz
