// Symbolic memory: a term per byte range. Each buffer is a sorted array of segments; splitting shifts the
// offset, equal neighbours coalesce, so that shards gathered from several ranks become one run of one term.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "impl/runtime/operand.h"
#include "impl/runtime/symbolic/term.h"

namespace gatherfuzz {

// The bytes from `begin` to the next segment are the bytes from `offset` of the value `term`.
// Zero and uninitialized memory have no offset, element size or label.
struct Segment {
  Term term = kZeroTerm;
  uint32_t begin = 0;
  uint32_t offset = 0;
  Label label = kNoLabel;
  uint32_t element = 0;  // element size in bytes; a word, as segments of 32 bytes are found faster
  uint8_t taint = 0;     // 1: holds a non-finite value

  bool has_position() const { return term != kZeroTerm && term != kUninitialized; }
  // Zero and uninitialized memory is the same wherever it lies.
  void normalize() {
    if (has_position()) return;
    offset = 0;
    label = kNoLabel;
    element = 0;
  }
};

// One operand's content seen as one value: the term itself where a single run covers it from its start,
// otherwise a hash of the pieces.
struct Digest {
  Term term = kZeroTerm;
  Label label = kNoLabel;
  uint8_t taint = 0;
};

// Told of every gradient contribution: parameter tag, whose data, and the summand.
class SummandListener {
 public:
  virtual ~SummandListener() = default;
  virtual void summand(int rank, uint16_t tag, Label label, Term term) = 0;
};

class SymbolicMemory {
 public:
  explicit SymbolicMemory(int rank = 0) : rank_(rank) { buffers_.resize(1); }

  int rank() const { return rank_; }
  void set_listener(SummandListener* listener) { listener_ = listener; }

  BufferId allocate(uint32_t bytes, bool zeroed);
  void release(BufferId buffer);
  void allocate_again(BufferId buffer, bool zeroed);

  // Calls f(segment, end) for each piece of the operand, cut to it; pieces are whole elements of the operand.
  // A piece whose element size is not the operand's or whose elements begin elsewhere, and an element made of
  // several pieces, are terms of their own that equal nothing expected.
  template <class F>
  void pieces(const Operand& operand, F&& f) const {
    if (operand.empty()) return;
    const Buffer& buffer = buffers_[operand.buffer];
    const std::vector<Segment>& segments = buffer.segments;
    const auto width = static_cast<uint8_t>(size_of(operand.dtype));
    const uint32_t inside = width - 1u;  // the bits of a position inside an element; sizes are powers of two
    for (std::size_t i = find(buffer, operand.begin); i < segments.size(); ++i) {
      if (segments[i].begin >= operand.end()) break;
      Segment piece = cut(segments[i], operand.begin);
      uint32_t end = end_of(buffer, i);
      if (end > operand.end()) end = operand.end();
      if ((((piece.begin - operand.begin) | (end - operand.begin)) & inside) != 0) [[unlikely]] {
        const uint32_t first = operand.begin + ((piece.begin - operand.begin + inside) & ~inside);
        const uint32_t last = operand.begin + ((end - operand.begin) & ~inside);
        if (first < last) f(seen_as(cut(piece, first), width), last);
        if (last < end && last >= piece.begin)
          f(torn_element(operand, last), std::min(last + width, operand.end()));
        continue;
      }
      f(seen_as(piece, width), end);
    }
  }

  Digest digest(const Operand& operand) const {
    if (operand.empty()) return {};
    // One segment that covers it and has elements where the operand does: most reads.
    const Buffer& buffer = buffers_[operand.buffer];
    const std::size_t i = find(buffer, operand.begin);
    const Segment& only = buffer.segments[i];
    if (end_of(buffer, i) >= operand.end()) [[likely]] {
      if (!only.has_position()) return {only.term, only.label, only.taint};
      const uint32_t offset = only.offset + (operand.begin - only.begin);
      const auto width = static_cast<uint32_t>(size_of(operand.dtype));
      if (only.element == width && (offset & (width - 1u)) == 0)
        return {term_at(only.term, offset), only.label, only.taint};
    }
    return digest_of_pieces(operand);
  }
  bool tainted(const Operand& operand) const;

  // Overwrites the whole operand with one value; offset 0 is at the operand's begin.
  void assign(const Operand& operand, Term term, Label label = kNoLabel, uint8_t taint = 0) {
    const auto width = static_cast<uint8_t>(size_of(operand.dtype));
    assign_piece(operand.buffer, Segment{term, operand.begin, 0, label, width, taint}, operand.end());
  }
  // Overwrites [value.begin, end) of a buffer with a piece.
  void assign_piece(BufferId id, const Segment& value, uint32_t end) {
    if (value.begin >= end) return;
    Buffer& buffer = buffers_[id];
    put(buffer, find(buffer, value.begin), value, end);
  }
  // Overwrites [pieces.front().begin, end) of a buffer: each piece reaches to where the next one begins.
  void assign_pieces(BufferId id, std::span<const Segment> pieces, uint32_t end);

  // Adds one value to the whole operand and reports it to the listener.
  void accumulate(const Operand& operand, Term summand, Label label, uint8_t taint);

  // The piece from `begin` on, where it begins before that.
  static Segment cut(Segment piece, uint32_t begin) {
    if (piece.begin < begin) {
      if (piece.has_position()) piece.offset += begin - piece.begin;
      piece.begin = begin;
    }
    return piece;
  }
  // Makes a piece one of elements of another width: a term of its own.
  static void reinterpret(Segment& piece, uint8_t width);

  // The segments of the operand, cut at its ends, to be changed in place; call settle afterwards.
  struct Span {
    Segment* first;
    Segment* last;
  };
  Span isolate(const Operand& operand);
  void settle(const Operand& operand);

  const std::vector<Segment>& segments(BufferId buffer) const { return buffers_[buffer].segments; }
  uint32_t bytes(BufferId buffer) const { return buffers_[buffer].bytes; }

  // Used by tools that put back what a range held before.
  std::vector<Segment> save(const Operand& operand) const;
  void restore(const Operand& operand, const std::vector<Segment>& saved);

 private:
  struct Buffer {
    std::vector<Segment> segments;
    uint32_t bytes = 0;
  };

  // Index of the segment that holds the position. The last few are counted: their loads do not wait for each
  // other as those of a binary search do.
  static std::size_t find(const Buffer& buffer, uint32_t position) {
    constexpr std::size_t kFew = 8;
    const Segment* const segments = buffer.segments.data();
    const Segment* first = segments;
    std::size_t left = buffer.segments.size();
    while (left > kFew) {
      const std::size_t half = left / 2;
      first = first[half].begin <= position ? first + half : first;
      left -= half;
    }
    std::size_t index = static_cast<std::size_t>(first - segments);
    for (std::size_t i = 1; i < left; ++i) index += first[i].begin <= position ? 1 : 0;
    return index;
  }
  static Segment seen_as(Segment piece, uint8_t width) {
    if (piece.has_position() && (piece.element != width || (piece.offset & (width - 1u)) != 0))
      reinterpret(piece, width);
    return piece;
  }
  // A value from `offset` on, as one term.
  static Term term_at(Term term, uint32_t offset) { return offset == 0 ? term : mix(term, offset); }
  Digest digest_of_pieces(const Operand& operand) const;
  Segment torn_element(const Operand& operand, uint32_t begin) const;
  static void add_to(Segment& segment, Term summand, uint32_t offset, uint8_t width, uint8_t taint);
  static bool continues(const Segment& left, const Segment& right) {
    if (left.term != right.term || left.label != right.label || left.taint != right.taint) return false;
    if (!left.has_position()) return true;
    return left.element == right.element && left.offset + (right.begin - left.begin) == right.offset;
  }
  static uint32_t end_of(const Buffer& buffer, std::size_t i) {
    return i + 1 < buffer.segments.size() ? buffer.segments[i + 1].begin : buffer.bytes;
  }
  // Overwrites [value.begin, end), which begins in segment i.
  void put(Buffer& buffer, std::size_t i, const Segment& value, uint32_t end) {
    if (buffer.segments[i].begin != value.begin || end_of(buffer, i) != end) [[unlikely]] {
      i = make_room(buffer, i, value.begin, end, 1);
    }
    Segment& segment = buffer.segments[i];
    segment = value;
    segment.normalize();
    join_neighbours(buffer.segments, i);
  }
  static std::size_t make_room(Buffer& buffer, std::size_t i, uint32_t begin, uint32_t end,
                               std::size_t count);
  static bool begin_alike(const Buffer& buffer, std::size_t i, std::span<const Segment> pieces, uint32_t end);
  static void join_all(std::vector<Segment>& segments, std::size_t first, std::size_t last);
  static void join_neighbours(std::vector<Segment>& segments, std::size_t i) {
    if (i + 1 < segments.size() && continues(segments[i], segments[i + 1])) [[unlikely]]
      segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (i > 0 && continues(segments[i - 1], segments[i])) [[unlikely]]
      segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(i));
  }
  static std::size_t split(Buffer& buffer, uint32_t position);

  int rank_;
  SummandListener* listener_ = nullptr;
  std::vector<Buffer> buffers_;
};

}  // namespace gatherfuzz
