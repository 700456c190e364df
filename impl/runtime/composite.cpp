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
  HashRule rule(body.term);
  for (std::size_t i = 0; i < body.reads; ++i) rule.input(memory, body.accesses[i].operand);
  for (std::size_t i = body.reads; i < body.accesses.size(); ++i)
    rule.output(memory, body.accesses[i].operand, body.accesses[i].field.mode);
}

// Whether the access settles what its bytes hold: it writes them, or adds to them where `sums` counts as
// well.
bool settles(const Access& access, bool sums) {
  return access.field.mode != Mode::read && (access.field.mode != Mode::accumulate || sums);
}

// Calls f(piece) for the parts of `range` that no access from `i` on settles.
template <class F>
void for_each_unwritten(const Operand& range, const std::vector<Access>& accesses, bool sums, std::size_t i,
                        F&& f) {
  for (; i < accesses.size(); ++i) {
    const Operand& done = accesses[i].operand;
    if (done.buffer != range.buffer || done.end() <= range.begin || range.end() <= done.begin ||
        !settles(accesses[i], sums))
      continue;
    Operand piece = range;
    if (range.begin < done.begin) {
      piece.bytes = done.begin - range.begin;
      for_each_unwritten(piece, accesses, sums, i + 1, f);
    }
    if (done.end() < range.end()) {
      piece.begin = done.end();
      piece.bytes = range.end() - piece.begin;
      for_each_unwritten(piece, accesses, sums, i + 1, f);
    }
    return;
  }
  f(range);
}

bool all_written(const Operand& range, const std::vector<Access>& accesses) {
  bool all = true;
  for_each_unwritten(range, accesses, false, 0, [&](const Operand&) { all = false; });
  return all;
}

// One operand from two neighbours or overlapping ranges of the same kind, where bytes may be joined.
bool join(Access& access, const Operand& other, const OperandField& field) {
  Operand& mine = access.operand;
  if (mine.buffer != other.buffer || mine.end() < other.begin || other.end() < mine.begin ||
      mine.tag != other.tag || mine.dtype != other.dtype || access.field.mode != field.mode ||
      access.field.content != field.content || access.field.plane != field.plane)
    return false;
  const uint32_t end = std::max(mine.end(), other.end());
  mine.begin = std::min(mine.begin, other.begin);
  mine.bytes = end - mine.begin;
  return true;
}

void extend(std::vector<Operand>& extents, const Operand& operand) {
  for (Operand& extent : extents) {
    if (extent.buffer != operand.buffer) continue;
    const uint32_t end = std::max(extent.end(), operand.end());
    extent.begin = std::min(extent.begin, operand.begin);
    extent.bytes = end - extent.begin;
    return;
  }
  extents.push_back(operand);
}

}  // namespace

CompositeRecorder::CompositeRecorder(const char* name) : composite_(std::make_unique<Composite>()) {
  composite_->type.name = name;
  composite_->type.size = sizeof(CompositeOp);
  composite_->type.composite = true;
  composite_->type.host = run_on_host;
  composite_->type.symbolic = run_symbolically;
  composite_->term = term_of(name);
  composite_->accesses.reserve(64);
  composite_->extents.reserve(8);
  composite_->parts.reserve(32);
  read_.reserve(16);
  written_.reserve(8);
}

void CompositeRecorder::submit(const OpType& type, const void* op, Site) {
  if (type.collective())
    throw RuntimeError(Error::invalid_value,
                       std::string("a composite cannot contain the collective ") + type.name);
  Composite& body = *composite_;
  body.parts.push_back({&type, body.storage.add(op, type.size)});
  for (const uint16_t offset : type.coefficients) {
    uint32_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte*>(op) + offset, sizeof bits);
    body.term = mix(body.term, bits);
  }
  // All reads come before the op's own writes.
  read_.clear();
  written_.clear();
  for_each_access(type, op, [&](const Operand& operand, const OperandField& field) {
    if (field.mode == Mode::read || field.mode == Mode::update) {
      OperandField read = field;
      read.mode = Mode::read;
      for_each_unwritten(operand, body.accesses, true, 0, [&](const Operand& piece) {
        read_.push_back({piece, read});
      });
    }
    if (field.mode == Mode::read) return;
    written_.push_back({operand, field});
    // What is added to something that the composite wrote is written by it.
    const bool own = field.mode == Mode::accumulate && all_written(operand, body.accesses);
    if (field.mode == Mode::update || own) written_.back().field.mode = Mode::write;
  });
  for (const Access& access : read_) add_access(access);
  for (const Access& access : written_) add_access(access);
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
  Composite& body = *composite_;
  const auto place = [](const Access& access) {
    return 2 * static_cast<int>(access.field.mode) + (reads_weight(access.field) ? 0 : 1);
  };
  std::stable_sort(body.accesses.begin(), body.accesses.end(),
                   [&](const Access& a, const Access& b) { return place(a) < place(b); });
  for (const Access& access : body.accesses) {
    body.weights += reads_weight(access.field) ? 1 : 0;
    body.reads += access.field.mode == Mode::read ? 1 : 0;
    body.sums += access.field.mode == Mode::accumulate ? 0 : 1;
    extend(body.extents, access.operand);
  }
  body.type.reads_weights = body.weights > 0;
  body.type.accumulates = body.sums < body.accesses.size();
  return std::move(composite_);
}

}  // namespace gatherfuzz
