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
  rule.scalar(body.coefficients);
  for (const Access& access : body.accesses)
    if (access.field.mode == Mode::read) rule.input(memory, access.operand);
  for (const Access& access : body.accesses)
    if (access.field.mode != Mode::read) rule.output(memory, access.operand, access.field.mode);
}

// The parts of `range` that no access of `written` writes, or adds to where `sums` counts as written.
std::vector<Operand> unwritten(const Operand& range, const std::vector<Access>& written, bool sums) {
  std::vector<Operand> rest{range};
  for (const Access& access : written) {
    const Operand& done = access.operand;
    if (access.field.mode == Mode::read || (access.field.mode == Mode::accumulate && !sums)) continue;
    if (done.buffer != range.buffer) continue;
    std::vector<Operand> left;
    for (Operand piece : rest) {
      const uint32_t end = piece.end();
      if (done.end() <= piece.begin || end <= done.begin) {
        left.push_back(piece);
        continue;
      }
      if (piece.begin < done.begin) {
        piece.bytes = done.begin - piece.begin;
        left.push_back(piece);
      }
      if (done.end() < end) {
        piece.begin = done.end();
        piece.bytes = end - piece.begin;
        left.push_back(piece);
      }
    }
    rest = std::move(left);
  }
  return rest;
}

// One operand from two neighbours or overlapping ranges of the same kind, where bytes may be joined.
bool join(Access& access, const Operand& other, const OperandField& field) {
  Operand& mine = access.operand;
  if (access.field.mode != field.mode || access.field.content != field.content ||
      access.field.plane != field.plane || mine.buffer != other.buffer || mine.dtype != other.dtype ||
      mine.tag != other.tag || mine.end() < other.begin || other.end() < mine.begin)
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
  if (type.collective())
    throw RuntimeError(Error::invalid_value,
                       std::string("a composite cannot contain the collective ") + type.name);
  Composite& body = *composite_;
  const std::size_t unit = sizeof(std::max_align_t);
  const std::size_t at = body.storage.size();
  body.storage.resize(at + (type.size + unit - 1) / unit);
  std::memcpy(body.storage.data() + at, op, type.size);
  body.parts.push_back({&type, static_cast<uint32_t>(at * unit)});
  for (const uint16_t offset : type.coefficients) {
    uint32_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(op) + offset, sizeof bits);
    body.coefficients = mix(body.coefficients, bits);
  }
  // All reads come before the op's own writes.
  std::vector<Access> read;
  for_each_access(type, op, [&](const Operand& operand, const OperandField& field) {
    if (field.mode != Mode::read && field.mode != Mode::update) return;
    for (const Operand& piece : unwritten(operand, body.accesses, true)) {
      read.push_back({piece, field});
      read.back().field.mode = Mode::read;
    }
  });
  std::vector<Access> written;
  for_each_access(type, op, [&](const Operand& operand, const OperandField& field) {
    if (field.mode == Mode::read) return;
    written.push_back({operand, field});
    // What is added to something that the composite wrote is written by it.
    const bool own = field.mode == Mode::accumulate && unwritten(operand, body.accesses, false).empty();
    if (field.mode == Mode::update || own) written.back().field.mode = Mode::write;
  });
  for (const Access& access : read) add_access(access);
  for (const Access& access : written) add_access(access);
}

void CompositeRecorder::add_access(const Access& access) {
  std::vector<Access>& accesses = composite_->accesses;
  Access grown = access;
  // What it joins may make it a neighbour of others.
  for (std::size_t i = 0; i < accesses.size();) {
    if (join(grown, accesses[i].operand, accesses[i].field)) {
      accesses.erase(accesses.begin() + static_cast<std::ptrdiff_t>(i));
      i = 0;
    } else {
      ++i;
    }
  }
  accesses.push_back(grown);
}

std::unique_ptr<Composite> CompositeRecorder::finish() {
  std::stable_sort(composite_->accesses.begin(), composite_->accesses.end(),
                   [](const Access& a, const Access& b) { return a.field.mode < b.field.mode; });
  return std::move(composite_);
}

}  // namespace gatherfuzz
