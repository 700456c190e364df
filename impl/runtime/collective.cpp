#include "impl/runtime/collective.h"

#include <algorithm>
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

// Sums pieces of every rank's bucket at the same position; position-aligned pieces add as group elements.
void add_pieces(std::vector<Segment>& sum, const std::vector<Segment>& other, uint32_t end) {
  static constexpr Term kMisaligned = term_of("misaligned");
  std::vector<Segment> result;
  std::size_t i = 0;
  std::size_t j = 0;
  uint32_t at = sum.empty() ? end : sum.front().begin;
  auto cut = [&](const std::vector<Segment>& list, std::size_t& k) {
    while (k + 1 < list.size() && list[k + 1].begin <= at) ++k;
    Segment s = list[k];
    if (s.has_position()) s.offset += at - s.begin;
    s.begin = at;
    return s;
  };
  while (at < end) {
    Segment a = cut(sum, i);
    const Segment b = cut(other, j);
    if (a.term == kZeroTerm) {
      const uint8_t taint = a.taint;
      a = b;
      a.taint |= taint;
    } else if (b.term != kZeroTerm) {
      const bool aligned = a.has_position() && b.has_position() && a.offset == b.offset && a.element == b.element;
      a.term = aligned ? a.term + b.term : mix(mix(kMisaligned, a.term), b.term + b.offset);
      a.taint |= b.taint;
    } else {
      a.taint |= b.taint;
    }
    a.label = kNoLabel;
    result.push_back(a);
    uint32_t next = end;
    if (i + 1 < sum.size()) next = std::min(next, sum[i + 1].begin);
    if (j + 1 < other.size()) next = std::min(next, other[j + 1].begin);
    at = next;
  }
  sum = std::move(result);
}

std::vector<Segment> cut_out(const SymbolicMemory& memory, const Operand& operand) {
  std::vector<Segment> list;
  memory.pieces(operand, [&](const Segment& s, uint32_t) {
    list.push_back(s);
    list.back().begin -= operand.begin;
  });
  return list;
}

void put(SymbolicMemory& memory, const Operand& operand, const std::vector<Segment>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    Segment s = list[i];
    s.begin += operand.begin;
    memory.assign_piece(operand.buffer, s, i + 1 < list.size() ? operand.begin + list[i + 1].begin : operand.end());
  }
}

Term factor_of(Reduction reduction, std::size_t ranks) {
  return reduction == Reduction::average ? scale_term(1.0f / static_cast<float>(ranks)) : 1;
}

float reduce_one(Reduction reduction, float a, float b) { return reduction == Reduction::max ? std::max(a, b) : a + b; }

}  // namespace

AllGather all_gather_in_place(const Operand& bucket, int rank, int ranks) {
  const uint32_t shard = bucket.count() / static_cast<uint32_t>(ranks);
  const auto r = static_cast<uint32_t>(rank);
  AllGather op;
  op.own = View<raw>(piece(bucket, r * shard, shard));
  op.before = View<raw>(piece(bucket, 0, r * shard));
  op.after = View<raw>(piece(bucket, (r + 1) * shard, bucket.count() - (r + 1) * shard));
  op.count = static_cast<int32_t>(shard);
  return op;
}

ReduceScatter reduce_scatter_in_place(const Operand& bucket, int rank, int ranks, Reduction reduction) {
  const uint32_t shard = bucket.count() / static_cast<uint32_t>(ranks);
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
  for (std::size_t from = 0; from < ops.size(); ++from) {
    const AllGather& source = as<AllGather>(ops[from]);
    if (source.own.empty()) continue;
    const std::vector<Segment> shard = cut_out(memories[from], source.own);
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
    const float factor = op.reduction == Reduction::average ? 1.0f / static_cast<float>(ranks) : 1.0f;
    for (uint32_t i = 0; i < n; ++i) store_one(memories[to], op.own, i, sum[i] * factor);
  }
}

void ReduceScatter::symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories) {
  const std::size_t ranks = ops.size();
  for (std::size_t to = 0; to < ranks; ++to) {
    const ReduceScatter& op = as<ReduceScatter>(ops[to]);
    if (op.own.empty()) continue;
    std::vector<Segment> sum;
    for (std::size_t from = 0; from < ranks; ++from) {
      Operand shard = whole(as<ReduceScatter>(ops[from]));
      shard.begin += static_cast<uint32_t>(to) * op.own.bytes;
      shard.bytes = op.own.bytes;
      const std::vector<Segment> list = cut_out(memories[from], shard);
      if (from == 0) {
        sum = list;
      } else {
        add_pieces(sum, list, op.own.bytes);
      }
    }
    const Term factor = factor_of(op.reduction, ranks);
    for (Segment& s : sum)
      if (s.has_position()) s.term *= factor;
    put(memories[to], op.own, sum);
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
        const float value = memories[r].in<float>(values)[i];
        result[i] = r == 0 ? value : reduce_one(first.reduction, result[i], value);
      }
    }
  }
  for (std::size_t r = 0; r < ops.size(); ++r) {
    const Operand& values = as<AllReduce>(ops[r]).values;
    std::memcpy(memories[r].data(values), counts ? static_cast<const void*>(total.data()) : result.data(), values.bytes);
  }
}

void AllReduce::symbolic_collective(std::span<const void* const> ops, std::span<SymbolicMemory> memories) {
  const AllReduce& first = as<AllReduce>(ops[0]);
  Term term = kZeroTerm;
  uint8_t taint = 0;
  for (std::size_t r = 0; r < ops.size(); ++r) {
    const Digest value = memories[r].digest(as<AllReduce>(ops[r]).values);
    // A maximum of equal values is that value; of different ones a mixture that does not depend on order.
    if (first.reduction == Reduction::max) {
      term = r == 0 || term == value.term ? value.term : mix(term_of("max"), term) + value.term;
    } else {
      term += value.term;
    }
    taint |= value.taint;
  }
  for (std::size_t r = 0; r < ops.size(); ++r) memories[r].assign(as<AllReduce>(ops[r]).values, term, kNoLabel, taint);
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
