#include "impl/runtime/symbolic/memory.h"

namespace gatherfuzz {

BufferId SymbolicMemory::allocate(uint32_t bytes, bool zeroed) {
  Buffer buffer;
  buffer.bytes = bytes;
  Segment all;
  all.term = zeroed ? kZeroTerm : kUninitialized;
  buffer.segments.push_back(all);
  buffers_.push_back(std::move(buffer));
  return static_cast<BufferId>(buffers_.size() - 1);
}

void SymbolicMemory::release(BufferId buffer) {
  assign_piece(buffer, Segment{kUninitialized}, bytes(buffer));
}

void SymbolicMemory::reinterpret(Segment& piece, uint8_t width) {
  static constexpr Term kReinterpret = term_of("reinterpret");
  static constexpr Term kShifted = term_of("shifted");
  const Term reason = piece.element != width ? kReinterpret : kShifted;
  piece.term = mix(mix(reason, piece.term), width * 256u + piece.offset % width);
  piece.element = width;
  piece.offset -= piece.offset % width;
}

// One element that several pieces make up.
Segment SymbolicMemory::torn_element(const Operand& operand, uint32_t begin) const {
  static constexpr Term kTorn = term_of("torn");
  const uint32_t end = std::min(begin + static_cast<uint32_t>(size_of(operand.dtype)), operand.end());
  const std::vector<Segment>& segments = buffers_[operand.buffer].segments;
  Segment element;
  element.term = kTorn;
  element.begin = begin;
  element.element = static_cast<uint8_t>(size_of(operand.dtype));
  for (std::size_t i = find(segments, begin); i < segments.size() && segments[i].begin < end; ++i) {
    const Segment fragment = cut(segments[i], begin);
    element.term = mix(mix(mix(element.term, fragment.term), fragment.offset), fragment.begin - begin);
    element.label = join_labels(element.label, fragment.label);
    element.taint |= fragment.taint;
  }
  return element;
}

bool SymbolicMemory::continues(const Segment& left, const Segment& right) {
  if (left.term != right.term || left.label != right.label || left.taint != right.taint) return false;
  if (!left.has_position()) return true;
  return left.element == right.element && left.offset + (right.begin - left.begin) == right.offset;
}

Digest SymbolicMemory::digest(const Operand& operand) const {
  Digest result;
  if (operand.empty()) return result;
  // One segment that begins where the operand does and holds its elements: most reads.
  const Buffer& buffer = buffers_[operand.buffer];
  const std::size_t i = find(buffer.segments, operand.begin);
  const Segment& only = buffer.segments[i];
  if (only.begin == operand.begin && only.offset == 0 && end_of(buffer, i) >= operand.end() &&
      (only.element == size_of(operand.dtype) || !only.has_position()))
    return {only.term, only.label, only.taint};
  bool first = true;
  bool several = false;
  pieces(operand, [&](const Segment& piece, uint32_t) {
    const Term here = piece.offset == 0 ? piece.term : mix(piece.term, piece.offset);
    if (first) {
      result.term = here;
      result.label = piece.label;
    } else {
      if (!several) result.term = mix(term_of("pieces"), result.term);
      several = true;
      result.term = mix(mix(result.term, here), piece.begin - operand.begin);
      result.label = join_labels(result.label, piece.label);
    }
    result.taint |= piece.taint;
    first = false;
  });
  return result;
}

bool SymbolicMemory::tainted(const Operand& operand) const {
  uint8_t taint = 0;
  pieces(operand, [&](const Segment& piece, uint32_t) { taint |= piece.taint; });
  return taint != 0;
}

void SymbolicMemory::assign(const Operand& operand, Term term, Label label, uint8_t taint) {
  if (operand.empty()) return;
  const bool positioned = term != kZeroTerm && term != kUninitialized;
  std::vector<Segment>& segments = buffers_[operand.buffer].segments;
  const std::size_t i = find(segments, operand.begin);
  if (segments[i].begin != operand.begin || end_of(buffers_[operand.buffer], i) != operand.end()) {
    const auto width = static_cast<uint8_t>(size_of(operand.dtype));
    assign_piece(operand.buffer, Segment{term, operand.begin, 0, label, width, taint}, operand.end());
    return;
  }
  // One segment by another of the same extent: most writes.
  Segment& segment = segments[i];
  segment.term = term;
  segment.offset = 0;
  segment.label = positioned ? label : kNoLabel;
  segment.element = positioned ? static_cast<uint8_t>(size_of(operand.dtype)) : 0;
  segment.taint = taint;
  if (segments.size() > 1) join_neighbours(segments, i);
}

void SymbolicMemory::assign_piece(BufferId id, const Segment& value, uint32_t end) {
  Buffer& buffer = buffers_[id];
  std::vector<Segment>& segments = buffer.segments;
  if (value.begin >= end) return;
  std::size_t i = find(segments, value.begin);
  if (segments[i].begin != value.begin || end_of(buffer, i) != end) {
    i = split(buffer, value.begin);
    const std::size_t j = split(buffer, end);
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                   segments.begin() + static_cast<std::ptrdiff_t>(j));
  }
  segments[i] = value;
  segments[i].normalize();
  join_neighbours(segments, i);
}

void SymbolicMemory::join_neighbours(std::vector<Segment>& segments, std::size_t i) {
  if (i + 1 < segments.size() && continues(segments[i], segments[i + 1]))
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  if (i > 0 && continues(segments[i - 1], segments[i]))
    segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
}

// Index of the segment that begins at `position`, made by splitting if need be; size() at the end of the
// buffer.
std::size_t SymbolicMemory::split(Buffer& buffer, uint32_t position) {
  std::vector<Segment>& segments = buffer.segments;
  if (position >= buffer.bytes) return segments.size();
  const std::size_t i = find(segments, position);
  if (segments[i].begin == position) return i;
  Segment right = segments[i];
  if (right.has_position()) right.offset += position - right.begin;
  right.begin = position;
  segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(i) + 1, right);
  return i + 1;
}

SymbolicMemory::Span SymbolicMemory::isolate(const Operand& operand) {
  Buffer& buffer = buffers_[operand.buffer];
  const std::size_t first = split(buffer, operand.begin);
  const std::size_t last = split(buffer, operand.end());
  return {buffer.segments.data() + first, buffer.segments.data() + last};
}

void SymbolicMemory::settle(const Operand& operand) {
  std::vector<Segment>& segments = buffers_[operand.buffer].segments;
  std::size_t i = find(segments, operand.begin);
  if (i > 0) --i;
  while (i + 1 < segments.size() && segments[i].begin <= operand.end()) {
    if (continues(segments[i], segments[i + 1])) {
      segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else {
      ++i;
    }
  }
}

void SymbolicMemory::accumulate(const Operand& operand, Term summand, Label label, uint8_t taint) {
  static constexpr Term kMisaligned = term_of("misaligned");
  if (operand.empty()) return;
  const auto width = static_cast<uint8_t>(size_of(operand.dtype));
  const Span span = isolate(operand);
  for (Segment* s = span.first; s != span.last; ++s) {
    const uint32_t offset = s->begin - operand.begin;
    s->taint |= taint;
    if (s->term == kZeroTerm) {
      s->term = summand;
      s->offset = offset;
      s->element = width;
    } else if (s->has_position() && s->offset == offset && s->element == width) {
      s->term += summand;
    } else {
      s->term = mix(mix(kMisaligned, s->term), summand + s->offset);
      s->offset = offset;
      s->element = width;
    }
    s->label = kNoLabel;
    s->normalize();
  }
  settle(operand);
  if (listener_ != nullptr && operand.tag != 0) listener_->summand(rank_, operand.tag, label, summand);
}

std::vector<Segment> SymbolicMemory::save(const Operand& operand) const {
  std::vector<Segment> saved;
  const std::vector<Segment>& segments = buffers_[operand.buffer].segments;
  for (std::size_t i = find(segments, operand.begin);
       i < segments.size() && segments[i].begin < operand.end(); ++i) {
    saved.push_back(cut(segments[i], operand.begin));
  }
  return saved;
}

void SymbolicMemory::restore(const Operand& operand, const std::vector<Segment>& saved) {
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const uint32_t end = i + 1 < saved.size() ? saved[i + 1].begin : operand.end();
    assign_piece(operand.buffer, saved[i], end);
  }
}

}  // namespace gatherfuzz
