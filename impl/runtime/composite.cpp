#include "impl/runtime/composite.h"

#include <algorithm>
#include <cstring>

namespace gatherfuzz {

namespace {

void run_on_host(const void* op, HostMemory& memory) {
  const Composite& body = *static_cast<const CompositeOp*>(op)->body;
  for (const Composite::Part& part : body.parts) {
    part.type->host(body.op(part), memory);
    memory.end_op();
  }
}

void run_symbolically(const void* op, SymbolicMemory& memory) {
  const Composite& body = *static_cast<const CompositeOp*>(op)->body;
  HashRule rule(body.type.name);
  for (const Access& access : body.accesses)
    if (access.field.mode == Mode::read) rule.input(memory, access.operand);
  for (const Access& access : body.accesses)
    if (access.field.mode != Mode::read) rule.output(memory, access.operand, access.field.mode);
}

bool covers(const Operand& outer, const Operand& inner) {
  return outer.buffer == inner.buffer && outer.begin <= inner.begin && inner.end() <= outer.end();
}

// One operand from two neighbours or overlapping ranges of the same kind, where bytes may be joined.
bool join(Access& access, const Operand& other, const OperandField& field) {
  Operand& mine = access.operand;
  if (access.field.mode != field.mode || access.field.content != field.content || access.field.plane != field.plane ||
      mine.buffer != other.buffer || mine.dtype != other.dtype || mine.tag != other.tag || mine.end() < other.begin ||
      other.end() < mine.begin)
    return false;
  const uint32_t end = std::max(mine.end(), other.end());
  mine.begin = std::min(mine.begin, other.begin);
  mine.bytes = end - mine.begin;
  return true;
}

}  // namespace

CompositeRecorder::CompositeRecorder(const char* name) : composite_(std::make_unique<Composite>()) {
  composite_->type.name = name;
  composite_->type.size = sizeof(CompositeOp);
  composite_->type.composite = true;
  composite_->type.host = run_on_host;
  composite_->type.symbolic = run_symbolically;
}

void CompositeRecorder::submit(const OpType& type, const void* op, Site) {
  Composite& body = *composite_;
  const std::size_t unit = sizeof(std::max_align_t);
  const std::size_t at = body.storage.size();
  body.storage.resize(at + (type.size + unit - 1) / unit);
  std::memcpy(body.storage.data() + at, op, type.size);
  body.parts.push_back({&type, static_cast<uint32_t>(at * unit)});
  for_each_access(type, op, [this](const Operand& operand, const OperandField& field) { add_access(operand, field); });
}

void CompositeRecorder::add_access(const Operand& operand, const OperandField& field) {
  std::vector<Access>& accesses = composite_->accesses;
  const bool reads = field.mode == Mode::read || field.mode == Mode::update;
  if (reads) {
    const bool written_before = std::any_of(accesses.begin(), accesses.end(), [&](const Access& a) {
      return a.field.mode != Mode::read && covers(a.operand, operand);
    });
    OperandField as_read = field;
    as_read.mode = Mode::read;
    if (!written_before && std::none_of(accesses.begin(), accesses.end(),
                                        [&](Access& a) { return join(a, operand, as_read); }))
      accesses.push_back({operand, as_read});
  }
  if (field.mode == Mode::read) return;
  OperandField as_write = field;
  if (as_write.mode == Mode::update) as_write.mode = Mode::write;
  if (std::none_of(accesses.begin(), accesses.end(), [&](Access& a) { return join(a, operand, as_write); }))
    accesses.push_back({operand, as_write});
}

std::unique_ptr<Composite> CompositeRecorder::finish() {
  std::stable_sort(composite_->accesses.begin(), composite_->accesses.end(),
                   [](const Access& a, const Access& b) { return a.field.mode < b.field.mode; });
  return std::move(composite_);
}

}  // namespace gatherfuzz
