#include "impl/runtime/collective.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// Pieces at the same position of two ranks: values of equal position add as group elements.
Segment add(Segment a, const Segment& b) {
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
  return a;
}

// A maximum of equal values is that value; of different ones a mixture that depends on neither order nor
// number.
Segment maximum(std::span<const Segment> values) {
  static constexpr Term kMaximum = term_of("max");
  Segment result = values[0];
  std::vector<Term> terms;
  for (const Segment& s : values) {
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

// `factor` is what a sum is multiplied with.
Segment reduce(std::span<const Segment> values, Reduction reduction, Term factor) {
  if (reduction == Reduction::max) return maximum(values);
  Segment sum = values[0];
  for (const Segment& s : values.subspan(1)) sum = add(sum, s);
  if (sum.has_position()) sum.term *= factor;
  return sum;
}

using Pieces = std::vector<Segment>;

// Memory that collectives work in, kept from one to the next.
struct Scratch {
  std::vector<Pieces> ranks;  // what each rank brings, with positions relative to the operand
  std::vector<std::size_t> at;
  Pieces here;
  Pieces result;

  static Scratch& for_ranks(std::size_t n) {
    static thread_local Scratch scratch;
    scratch.ranks.resize(n);
    return scratch;
  }
};

void cut_out(const SymbolicMemory& memory, const Operand& operand, Pieces& list) {
  list.clear();
  memory.pieces(operand, [&](const Segment& s, uint32_t) {
    list.push_back(s);
    list.back().begin -= operand.begin;
  });
}

// Reduces the pieces [0, end) of every rank, position by position, to the scratch's result.
void reduce_pieces(Scratch& scratch, uint32_t end, Reduction reduction) {
  scratch.result.clear();
  scratch.here.resize(scratch.ranks.size());
  scratch.at.assign(scratch.ranks.size(), 0);
  const Term factor = factor_of(reduction, scratch.ranks.size());
  for (uint32_t begin = 0; begin < end;) {
    uint32_t next = end;
    for (std::size_t r = 0; r < scratch.ranks.size(); ++r) {
      const Pieces& list = scratch.ranks[r];
      std::size_t& at = scratch.at[r];
      while (at + 1 < list.size() && list[at + 1].begin <= begin) ++at;
      if (at + 1 < list.size()) next = std::min(next, list[at + 1].begin);
      Segment& here = scratch.here[r];
      here = list[at];
      if (here.has_position()) here.offset += begin - here.begin;
      here.begin = begin;
    }
    scratch.result.push_back(reduce(scratch.here, reduction, factor));
    begin = next;
  }
}

void put(SymbolicMemory& memory, const Operand& operand, const Pieces& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    Segment s = list[i];
    s.begin += operand.begin;
    memory.assign_piece(operand.buffer, s,
                        i + 1 < list.size() ? operand.begin + list[i + 1].begin : operand.end());
  }
}

// NaN wins, as a taint does.
float reduce_one(Reduction reduction, float a, float b) {
  if (reduction != Reduction::max) return a + b;
  return std::isnan(b) || b > a ? b : a;
}

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
  Pieces& shard = Scratch::for_ranks(ops.size()).result;
  for (std::size_t from = 0; from < ops.size(); ++from) {
    const AllGather& source = as<AllGather>(ops[from]);
    if (source.own.empty()) continue;
    cut_out(memories[from], source.own, shard);
    for (std::size_t to = 0; to < ops.size(); ++to) {
      if (from == to) continue;
      Operand target = whole(as<AllGather>(ops[to]));
      target.begin += static_cast<uint32_t>(from) * source.own.bytes;
      target.bytes = source.own.bytes;
      put(memories[to], target, shard);
    }
  }
}

void ReduceScatter::host_collective(std::span<const void* const> ops, std::span<HostMemory> memories) {
  const auto ranks = static_cast<uint32_t>(ops.size());
  std::vector<float> sum;
  for (uint32_t to = 0; to < ranks; ++to) {
    const ReduceScatter& op = as<ReduceScatter>(ops[to]);
    const auto n = static_cast<uint32_t>(op.count);
    sum.assign(n, 0.0f);
    for (uint32_t from = 0; from < ranks; ++from) {
      const Operand bucket = whole(as<ReduceScatter>(ops[from]));
      for (uint32_t i = 0; i < n; ++i) {
        const float value = load_one(memories[from], bucket, to * n + i);
        sum[i] = from == 0 ? value : reduce_one(op.reduction, sum[i], value);
      }
    }
    const float factor = factor_on_host(op.reduction, ranks);
    for (uint32_t i = 0; i < n; ++i) store_one(memories[to], op.own, i, sum[i] * factor);
  }
}

void ReduceScatter::symbolic_collective(std::span<const void* const> ops,
                                        std::span<SymbolicMemory> memories) {
  const std::size_t ranks = ops.size();
  Scratch& scratch = Scratch::for_ranks(ranks);
  for (std::size_t to = 0; to < ranks; ++to) {
    const ReduceScatter& op = as<ReduceScatter>(ops[to]);
    if (op.own.empty()) continue;
    for (std::size_t from = 0; from < ranks; ++from) {
      Operand shard = whole(as<ReduceScatter>(ops[from]));
      shard.begin += static_cast<uint32_t>(to) * op.own.bytes;
      shard.bytes = op.own.bytes;
      cut_out(memories[from], shard, scratch.ranks[from]);
    }
    reduce_pieces(scratch, op.own.bytes, op.reduction);
    put(memories[to], op.own, scratch.result);
  }
}

void AllReduce::host_collective(std::span<const void* const> ops, std::span<HostMemory> memories) {
  const AllReduce& first = as<AllReduce>(ops[0]);
  const auto n = static_cast<uint32_t>(first.count);
  const bool counts = first.values.dtype == DType::u64;
  std::vector<uint64_t> total(counts ? n : 0);
  std::vector<float> result(counts ? 0 : n);
  for (std::size_t r = 0; r < ops.size(); ++r) {
    const Operand& values = as<AllReduce>(ops[r]).values;
    for (uint32_t i = 0; i < n; ++i) {
      if (counts) {
        total[i] += memories[r].in<uint64_t>(values)[i];
      } else {
        const float value = load_one(memories[r], values, i);
        result[i] = r == 0 ? value : reduce_one(first.reduction, result[i], value);
      }
    }
  }
  const float factor = factor_on_host(first.reduction, ops.size());
  for (std::size_t r = 0; r < ops.size(); ++r) {
    const Operand& values = as<AllReduce>(ops[r]).values;
    for (uint32_t i = 0; i < n; ++i) {
      if (counts) {
        memories[r].out<uint64_t>(values)[i] = total[i];
      } else {
        store_one(memories[r], values, i, result[i] * factor);
      }
    }
  }
}

void AllReduce::symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories) {
  Scratch& scratch = Scratch::for_ranks(ops.size());
  for (std::size_t r = 0; r < ops.size(); ++r)
    cut_out(memories[r], as<AllReduce>(ops[r]).values, scratch.ranks[r]);
  const AllReduce& first = as<AllReduce>(ops[0]);
  reduce_pieces(scratch, first.values.bytes, first.reduction);
  for (std::size_t r = 0; r < ops.size(); ++r) put(memories[r], as<AllReduce>(ops[r]).values, scratch.result);
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
