// A composite: a run of ops recorded once and launched as one op with the union of their footprints. The
// coarse model is the layer code recorded this way; the fine model launches the same ops one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "impl/runtime/error.h"
#include "impl/runtime/op_storage.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

struct Access {
  Operand operand;
  OperandField field;
};

struct Composite {
  struct Part {
    const OpType* type = nullptr;
    uint32_t place = 0;  // of the op in `storage`
  };
  OpType type;  // named; composite == true
  std::vector<Part> parts;
  OpStorage storage;
  // Reads of what no part wrote before, weights first; then writes, then accumulations.
  std::vector<Access> accesses;
  std::vector<Operand> extents;  // by buffer: the range that all accesses lie in
  std::size_t weights = 0;       // number of reads of weights
  std::size_t reads = 0;         // number of reads
  std::size_t sums = 0;          // index of the first accumulation
  Term term = 0;                 // of the name and all factors that parts multiply with

  const std::byte* op(const Part& part) const { return storage.at(part.place); }
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
  std::vector<Access> read_, written_;  // by the op that is being submitted
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

// Likewise, for reads of weights.
template <class F>
void for_each_weight_read(const OpType& type, const void* op, F&& f) {
  if (!type.reads_weights) return;
  if (type.composite) {
    const Composite& body = *static_cast<const CompositeOp*>(op)->body;
    for (std::size_t i = 0; i < body.weights; ++i) f(body.accesses[i].operand, body.accesses[i].field);
    return;
  }
  for_each_access(type, op, [&](const Operand& operand, const OperandField& field) {
    if (reads_weight(field)) f(operand, field);
  });
}

// Likewise, for those that add to a gradient.
template <class F>
void for_each_accumulation(const OpType& type, const void* op, F&& f) {
  if (!type.accumulates) return;
  if (type.composite) {
    const Composite& body = *static_cast<const CompositeOp*>(op)->body;
    for (std::size_t i = body.sums; i < body.accesses.size(); ++i)
      f(body.accesses[i].operand, body.accesses[i].field);
    return;
  }
  for_each_access(type, op, [&](const Operand& operand, const OperandField& field) {
    if (field.mode == Mode::accumulate) f(operand, field);
  });
}

}  // namespace gatherfuzz
