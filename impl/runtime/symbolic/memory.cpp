#include "impl/runtime/symbolic/memory.h"

namespace gatherfuzz {

BufferId SymbolicMemory::allocate(uint32_t bytes, bool zeroed) {
  Buffer buffer;
  buffer.bytes = bytes;
  Segment all;
  all.term = zeroed ? kZeroTerm : kUninitialized;
  buffer.segments.reserve(8);
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
  for (std::size_t i = find(buffers_[operand.buffer], begin); i < segments.size() && segments[i].begin < end;
       ++i) {
    const Segment fragment = cut(segments[i], begin);
    element.term = mix(mix(mix(element.term, fragment.term), fragment.offset), fragment.begin - begin);
    element.label = join_labels(element.label, fragment.label);
    element.taint |= fragment.taint;
  }
  return element;
}

Digest SymbolicMemory::digest_of_pieces(const Operand& operand) const {
  static constexpr Term kPieces = term_of("pieces");
  Digest result;
  bool first = true;
  bool several = false;
  pieces(operand, [&](const Segment& piece, uint32_t) {
    const Term here = piece.offset == 0 ? piece.term : mix(piece.term, piece.offset);
    if (first) {
      result.term = here;
      result.label = piece.label;
    } else {
      if (!several) result.term = mix(kPieces, result.term);
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

// Makes [begin, end), which begins in segment i, one segment and returns its index; what it holds
// is left to the caller.
std::size_t SymbolicMemory::make_room(Buffer& buffer, std::size_t i, uint32_t begin, uint32_t end) {
  std::vector<Segment>& segments = buffer.segments;
  std::size_t last = i;
  while (last + 1 < segments.size() && end_of(buffer, last) < end) ++last;
  const Segment right = cut(segments[last], end);
  const bool keeps_left = segments[i].begin < begin;
  const bool keeps_right = end < end_of(buffer, last);
  const std::size_t first = i + (keeps_left ? 1 : 0);            // index of the range's own segment
  const std::size_t wanted = first + 1 + (keeps_right ? 1 : 0);  // index of what follows
  const auto at = [&](std::size_t index) { return segments.begin() + static_cast<std::ptrdiff_t>(index); };
  if (wanted < last + 1) {
    segments.erase(at(wanted), at(last + 1));
  } else if (wanted > last + 1) {
    segments.insert(at(last + 1), wanted - (last + 1), right);
  }
  if (keeps_right) segments[first + 1] = right;
  return first;
}

// Index of the segment that begins at `position`, made by splitting if need be; size() at the end of the
// buffer.
std::size_t SymbolicMemory::split(Buffer& buffer, uint32_t position) {
  std::vector<Segment>& segments = buffer.segments;
  if (position >= buffer.bytes) return segments.size();
  const std::size_t i = find(buffer, position);
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
  std::size_t i = find(buffers_[operand.buffer], operand.begin);
  if (i > 0) --i;
  while (i + 1 < segments.size() && segments[i].begin <= operand.end()) {
    if (continues(segments[i], segments[i + 1])) {
      segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else {
      ++i;
    }
  }
}

void SymbolicMemory::add_to(Segment& segment, Term summand, uint32_t offset, uint8_t width, uint8_t taint) {
  static constexpr Term kMisaligned = term_of("misaligned");
  segment.taint |= taint;
  segment.label = kNoLabel;
  if (segment.has_position() && segment.offset == offset && segment.element == width) {
    segment.term += summand;
  } else {
    segment.term =
        segment.term == kZeroTerm ? summand : mix(mix(kMisaligned, segment.term), summand + segment.offset);
    segment.offset = offset;
    segment.element = width;
  }
  segment.normalize();
}

void SymbolicMemory::accumulate(const Operand& operand, Term summand, Label label, uint8_t taint) {
  if (operand.empty()) return;
  const auto width = static_cast<uint8_t>(size_of(operand.dtype));
  Buffer& buffer = buffers_[operand.buffer];
  const std::size_t i = find(buffer, operand.begin);
  if (end_of(buffer, i) >= operand.end()) {  // inside one segment: all clean runs
    Segment sum = cut(buffer.segments[i], operand.begin);
    add_to(sum, summand, 0, width, taint);
    put(buffer, i, sum, operand.end());
  } else {
    const Span span = isolate(operand);
    for (Segment* s = span.first; s != span.last; ++s)
      add_to(*s, summand, s->begin - operand.begin, width, taint);
    settle(operand);
  }
  if (listener_ != nullptr && operand.tag != 0) listener_->summand(rank_, operand.tag, label, summand);
}

std::vector<Segment> SymbolicMemory::save(const Operand& operand) const {
  std::vector<Segment> saved;
  const std::vector<Segment>& segments = buffers_[operand.buffer].segments;
  for (std::size_t i = find(buffers_[operand.buffer], operand.begin);
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
