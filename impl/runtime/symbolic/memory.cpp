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

void SymbolicMemory::allocate_again(BufferId buffer, bool zeroed) {
  assign_piece(buffer, Segment{zeroed ? kZeroTerm : kUninitialized}, bytes(buffer));
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
    const Term here = term_at(piece.term, piece.offset);
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

// Makes [begin, end), which begins in segment i, `count` segments and returns the index of the first; what
// they hold is left to the caller.
std::size_t SymbolicMemory::make_room(Buffer& buffer, std::size_t i, uint32_t begin, uint32_t end,
                                      std::size_t count) {
  std::vector<Segment>& segments = buffer.segments;
  std::size_t last = i;
  while (last + 1 < segments.size() && end_of(buffer, last) < end) ++last;
  const Segment right = cut(segments[last], end);
  const bool keeps_left = segments[i].begin < begin;
  const bool keeps_right = end < end_of(buffer, last);
  const std::size_t first = i + (keeps_left ? 1 : 0);                // index of the range's own segments
  const std::size_t wanted = first + count + (keeps_right ? 1 : 0);  // index of what follows
  const auto at = [&](std::size_t index) { return segments.begin() + static_cast<std::ptrdiff_t>(index); };
  if (wanted < last + 1) {
    segments.erase(at(wanted), at(last + 1));
  } else if (wanted > last + 1) {
    segments.insert(at(last + 1), wanted - (last + 1), right);
  }
  if (keeps_right) segments[first + count] = right;
  return first;
}

// Whether the segments from i on begin where the pieces do, and end with them.
bool SymbolicMemory::begin_alike(const Buffer& buffer, std::size_t i, std::span<const Segment> pieces,
                                 uint32_t end) {
  const std::vector<Segment>& segments = buffer.segments;
  if (i + pieces.size() > segments.size() || end_of(buffer, i + pieces.size() - 1) != end) return false;
  return std::equal(pieces.begin(), pieces.end(), segments.begin() + static_cast<std::ptrdiff_t>(i),
                    [](const Segment& a, const Segment& b) { return a.begin == b.begin; });
}

void SymbolicMemory::assign_pieces(BufferId id, std::span<const Segment> pieces, uint32_t end) {
  if (pieces.empty() || pieces.front().begin >= end) return;
  Buffer& buffer = buffers_[id];
  std::vector<Segment>& segments = buffer.segments;
  std::size_t i = find(buffer, pieces.front().begin);
  if (!begin_alike(buffer, i, pieces, end))
    i = make_room(buffer, i, pieces.front().begin, end, pieces.size());
  bool joins = false;
  std::size_t at = i;
  for (const Segment& piece : pieces) {
    segments[at] = piece;
    segments[at].normalize();
    joins = joins || (at > 0 && continues(segments[at - 1], segments[at]));
    ++at;
  }
  joins = joins || (at < segments.size() && continues(segments[at - 1], segments[at]));
  if (joins) join_all(segments, i > 0 ? i - 1 : 0, std::min(at, segments.size() - 1));
}

// Makes one of neighbours that continue each other, among [first, last].
void SymbolicMemory::join_all(std::vector<Segment>& segments, std::size_t first, std::size_t last) {
  std::size_t kept = first;
  for (std::size_t i = first + 1; i <= last; ++i)
    if (!continues(segments[kept], segments[i])) segments[++kept] = segments[i];
  segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(kept) + 1,
                 segments.begin() + static_cast<std::ptrdiff_t>(last) + 1);
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
  const Buffer& buffer = buffers_[operand.buffer];
  const std::size_t first = find(buffer, operand.begin);
  join_all(buffers_[operand.buffer].segments, first > 0 ? first - 1 : 0, find(buffer, operand.end()));
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
  assign_pieces(operand.buffer, saved, operand.end());
}

}  // namespace gatherfuzz
