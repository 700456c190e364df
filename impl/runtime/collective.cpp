#include "impl/runtime/collective.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "impl/runtime/symbolic/aligned_pieces.h"

namespace gatherfuzz {

namespace {

template <class Op>
const Op& as(const void* op) {
  return *static_cast<const Op*>(op);
}

Operand piece(const Operand& bucket, uint32_t first, uint32_t n) {
  Operand part = bucket;
  const auto size = static_cast<uint32_t>(size_of(bucket.dtype));
  part.begin = bucket.begin + first * size;
  part.bytes = n * size;
  return part;
}

// The whole bucket, from the three pieces of an op.
template <class Op>
Operand whole(const Op& op) {
  Operand bucket = op.own;
  bucket.begin = op.before.empty() ? op.own.begin : op.before.begin;
  bucket.bytes = op.before.bytes + op.own.bytes + op.after.bytes;
  return bucket;
}

float load_one(const HostMemory& memory, const Operand& operand, uint32_t i) {
  return operand.dtype == DType::f32 ? memory.in<float>(operand)[i] : to_float(memory.in<bf16>(operand)[i]);
}

void store_one(HostMemory& memory, const Operand& operand, uint32_t i, float value) {
  if (operand.dtype == DType::f32) {
    memory.out<float>(operand)[i] = value;
  } else {
    memory.out<bf16>(operand)[i] = to_bf16(value);
  }
}

Term factor_of(Reduction reduction, std::size_t ranks) {
  return reduction == Reduction::average ? scale_term(1.0f / static_cast<float>(ranks)) : 1;
}

// Values of equal position add as group elements.
void add_to(Segment& a, const Segment& b) {
  static constexpr Term kMisaligned = term_of("misaligned");
  const uint8_t taint = a.taint | b.taint;
  if (a.term == kZeroTerm) {
    const uint32_t begin = a.begin;
    a = b;
    a.begin = begin;
  } else if (b.term != kZeroTerm) {
    const bool aligned =
        a.has_position() && b.has_position() && a.offset == b.offset && a.element == b.element;
    a.term = aligned ? a.term + b.term : mix(mix(kMisaligned, a.term), b.term + b.offset);
  }
  a.label = kNoLabel;
  a.taint = taint;
  a.normalize();
}

// A maximum of equal values is that value; of different ones a mixture that depends on neither order nor
// number.
Segment maximum(AlignedPieces& ranks, std::size_t piece) {
  static constexpr Term kMaximum = term_of("max");
  Segment result = ranks.of(0)[piece];
  std::vector<Term> terms;
  for (std::size_t r = 0; r < ranks.operands(); ++r) {
    const Segment& s = ranks.of(r)[piece];
    const Term term = s.offset == 0 ? s.term : mix(s.term, s.offset);
    if (std::find(terms.begin(), terms.end(), term) == terms.end()) terms.push_back(term);
    result.taint |= s.taint;
    if (s.has_position()) result.element = s.element;
  }
  result.label = kNoLabel;
  if (terms.size() > 1) {
    result.term = kZeroTerm;
    result.offset = 0;
    for (const Term term : terms) result.term += mix(kMaximum, term);
  }
  result.normalize();
  return result;
}

// Kept from one collective to the next for its memory.
AlignedPieces& pieces_of(std::size_t ranks) {
  static thread_local AlignedPieces pieces(ranks);
  pieces.expect(ranks);
  return pieces;
}

// What all ranks bring, reduced piece by piece; in place of what the first brought.
std::span<Segment> reduce(AlignedPieces& ranks, Reduction reduction) {
  ranks.align();
  const std::span<Segment> result = ranks.of(0);
  if (reduction == Reduction::max) {
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = maximum(ranks, i);
    return result;
  }
  for (std::size_t r = 1; r < ranks.operands(); ++r) {
    const std::span<const Segment> other = ranks.of(r);
    for (std::size_t i = 0; i < result.size(); ++i) add_to(result[i], other[i]);
  }
  const Term factor = factor_of(reduction, ranks.operands());
  for (Segment& s : result)
    if (s.has_position()) s.term *= factor;
  return result;
}

// Pieces with positions relative to the operand.
void put(SymbolicMemory& memory, const Operand& operand, std::span<Segment> pieces) {
  for (Segment& s : pieces) s.begin += operand.begin;
  memory.assign_pieces(operand.buffer, pieces, operand.end());
  for (Segment& s : pieces) s.begin -= operand.begin;
}

// NaN wins, as a taint does.
float reduce_one(Reduction reduction, float a, float b) {
  if (reduction != Reduction::max) return a + b;
  return std::isnan(b) || b > a ? b : a;
}

// NCCL averages by multiplying what each rank brings, before the sum (PreMulSum).
float factor_on_host(Reduction reduction, std::size_t ranks) {
  return reduction == Reduction::average ? 1.0f / static_cast<float>(ranks) : 1.0f;
}

uint32_t shard_of(const Operand& bucket, int ranks) {
  const auto n = static_cast<uint32_t>(ranks);
  if (bucket.count() % n != 0)
    throw RuntimeError(Error::invalid_value, "a bucket of " + std::to_string(bucket.count()) +
                                                 " elements does not divide into " + std::to_string(n) +
                                                 " shards");
  return bucket.count() / n;
}

}  // namespace

AllGather all_gather_in_place(const Operand& bucket, int rank, int ranks) {
  const uint32_t shard = shard_of(bucket, ranks);
  const auto r = static_cast<uint32_t>(rank);
  AllGather op;
  op.own = View<raw>(piece(bucket, r * shard, shard));
  op.before = View<raw>(piece(bucket, 0, r * shard));
  op.after = View<raw>(piece(bucket, (r + 1) * shard, bucket.count() - (r + 1) * shard));
  op.count = static_cast<int32_t>(shard);
  return op;
}

ReduceScatter reduce_scatter_in_place(const Operand& bucket, int rank, int ranks, Reduction reduction) {
  const uint32_t shard = shard_of(bucket, ranks);
  const auto r = static_cast<uint32_t>(rank);
  ReduceScatter op;
  op.before = View<real>(piece(bucket, 0, r * shard));
  op.own = View<real>(piece(bucket, r * shard, shard));
  op.after = View<real>(piece(bucket, (r + 1) * shard, bucket.count() - (r + 1) * shard));
  op.count = static_cast<int32_t>(shard);
  op.reduction = reduction;
  return op;
}

void AllGather::host_collective(std::span<const void* const> ops, std::span<HostMemory> memories) {
  for (std::size_t to = 0; to < ops.size(); ++to) {
    const Operand bucket = whole(as<AllGather>(ops[to]));
    for (std::size_t from = 0; from < ops.size(); ++from) {
      const AllGather& source = as<AllGather>(ops[from]);
      if (from == to || source.own.empty()) continue;
      std::byte* target = memories[to].data(bucket) + from * source.own.bytes;
      std::memcpy(target, memories[from].data(source.own), source.own.bytes);
    }
  }
}

void AllGather::symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories) {
  AlignedPieces& shard = pieces_of(1);
  for (std::size_t from = 0; from < ops.size(); ++from) {
    const AllGather& source = as<AllGather>(ops[from]);
    if (source.own.empty()) continue;
    shard.load(0, memories[from], source.own);
    for (std::size_t to = 0; to < ops.size(); ++to) {
      if (from == to) continue;
      Operand target = whole(as<AllGather>(ops[to]));
      target.begin += static_cast<uint32_t>(from) * source.own.bytes;
      target.bytes = source.own.bytes;
      put(memories[to], target, shard.of(0));
    }
  }
}

void ReduceScatter::host_collective(std::span<const void* const> ops, std::span<HostMemory> memories) {
  const auto ranks = static_cast<uint32_t>(ops.size());
  std::vector<float> sum;
  for (uint32_t to = 0; to < ranks; ++to) {
    const ReduceScatter& op = as<ReduceScatter>(ops[to]);
    const auto n = static_cast<uint32_t>(op.count);
    const float factor = factor_on_host(op.reduction, ranks);
    sum.assign(n, 0.0f);
    for (uint32_t from = 0; from < ranks; ++from) {
      const Operand bucket = whole(as<ReduceScatter>(ops[from]));
      for (uint32_t i = 0; i < n; ++i) {
        const float value = load_one(memories[from], bucket, to * n + i) * factor;
        sum[i] = from == 0 ? value : reduce_one(op.reduction, sum[i], value);
      }
    }
    for (uint32_t i = 0; i < n; ++i) store_one(memories[to], op.own, i, sum[i]);
  }
}

void ReduceScatter::symbolic_collective(std::span<const void* const> ops,
                                        std::span<SymbolicMemory> memories) {
  const std::size_t ranks = ops.size();
  AlignedPieces& pieces = pieces_of(ranks);
  for (std::size_t to = 0; to < ranks; ++to) {
    const ReduceScatter& op = as<ReduceScatter>(ops[to]);
    if (op.own.empty()) continue;
    for (std::size_t from = 0; from < ranks; ++from) {
      Operand shard = whole(as<ReduceScatter>(ops[from]));
      shard.begin += static_cast<uint32_t>(to) * op.own.bytes;
      shard.bytes = op.own.bytes;
      pieces.load(from, memories[from], shard);
    }
    put(memories[to], op.own, reduce(pieces, op.reduction));
  }
}

void AllReduce::host_collective(std::span<const void* const> ops, std::span<HostMemory> memories) {
  const AllReduce& first = as<AllReduce>(ops[0]);
  const auto n = static_cast<uint32_t>(first.count);
  const bool counts = first.values.dtype == DType::u64;
  std::vector<uint64_t> total(counts ? n : 0);
  std::vector<float> result(counts ? 0 : n);
  const float factor = factor_on_host(first.reduction, ops.size());
  for (std::size_t r = 0; r < ops.size(); ++r) {
    const Operand& values = as<AllReduce>(ops[r]).values;
    for (uint32_t i = 0; i < n; ++i) {
      if (counts) {
        total[i] += memories[r].in<uint64_t>(values)[i];
      } else {
        const float value = load_one(memories[r], values, i) * factor;
        result[i] = r == 0 ? value : reduce_one(first.reduction, result[i], value);
      }
    }
  }
  for (std::size_t r = 0; r < ops.size(); ++r) {
    const Operand& values = as<AllReduce>(ops[r]).values;
    for (uint32_t i = 0; i < n; ++i) {
      if (counts) {
        memories[r].out<uint64_t>(values)[i] = total[i];
      } else {
        store_one(memories[r], values, i, result[i]);
      }
    }
  }
}

void AllReduce::symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories) {
  AlignedPieces& pieces = pieces_of(ops.size());
  for (std::size_t r = 0; r < ops.size(); ++r) pieces.load(r, memories[r], as<AllReduce>(ops[r]).values);
  const std::span<Segment> result = reduce(pieces, as<AllReduce>(ops[0]).reduction);
  for (std::size_t r = 0; r < ops.size(); ++r) put(memories[r], as<AllReduce>(ops[r]).values, result);
}

namespace {

template <class Op>
bool is_in_place(const Op& op, int rank, int ranks) {
  const auto shards = [&](const Operand& part, int n, uint32_t begin) {
    const bool whole_shards = part.bytes == static_cast<uint32_t>(n) * op.own.bytes;
    return whole_shards && (n == 0 || (part.buffer == op.own.buffer && part.begin == begin));
  };
  const uint32_t lower = static_cast<uint32_t>(rank) * op.own.bytes;
  return lower <= op.own.begin && shards(op.before, rank, op.own.begin - lower) &&
         shards(op.after, ranks - 1 - rank, op.own.end());
}

}  // namespace

void check_layout(const OpType& type, const void* op, int rank, int ranks) {
  const bool good = &type == &op_type<AllGather>()       ? is_in_place(as<AllGather>(op), rank, ranks)
                    : &type == &op_type<ReduceScatter>() ? is_in_place(as<ReduceScatter>(op), rank, ranks)
                                                         : true;
  if (!good)
    throw RuntimeError(Error::nccl_invalid_usage,
                       std::string(type.name) + " of rank " + std::to_string(rank) +
                           " is not in place: its own shard must lie at rank * count of one bucket of " +
                           std::to_string(ranks) + " equal shards");
}

CollectiveRanges collective_ranges(const OpType& type, const void* op) {
  if (&type == &op_type<AllGather>()) return {as<AllGather>(op).own, whole(as<AllGather>(op))};
  if (&type == &op_type<ReduceScatter>()) return {as<ReduceScatter>(op).own, whole(as<ReduceScatter>(op))};
  return {as<AllReduce>(op).values, as<AllReduce>(op).values};
}

CollectiveCall describe_collective(const OpType& type, const void* op) {
  CollectiveCall call;
  call.type = &type;
  if (&type == &op_type<AllGather>()) {
    call.count = as<AllGather>(op).count;
    call.dtype = as<AllGather>(op).own.dtype;
  } else if (&type == &op_type<ReduceScatter>()) {
    call.count = as<ReduceScatter>(op).count;
    call.dtype = as<ReduceScatter>(op).own.dtype;
    call.reduction = as<ReduceScatter>(op).reduction;
  } else {
    call.count = as<AllReduce>(op).count;
    call.dtype = as<AllReduce>(op).values.dtype;
    call.reduction = as<AllReduce>(op).reduction;
  }
  return call;
}

}  // namespace gatherfuzz
