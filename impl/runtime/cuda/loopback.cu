#include <cuda_bf16.h>

#include "impl/runtime/cuda/check.h"
#include "impl/runtime/cuda/communicator.h"

namespace gatherfuzz {

namespace {

enum class Kind : int { all_gather, reduce_scatter, all_reduce };
enum Failure : unsigned { kNone, kDisagree, kNobodyCame };

// What one rank asks for.
struct Call {
  std::byte* whole;
  long long count;  // elements: a shard, or of an all-reduce all
  int element_bytes;
  Kind kind;
  DType dtype;
  Reduction reduction;
};

}  // namespace

struct Loopback::Shared {
  Call calls[kMaxRanks];
  unsigned passed[kMaxRanks];  // barriers that the rank has come to
  unsigned failure;
};

namespace {

constexpr long long kPatience = 4'000'000'000;  // cycles, about two seconds

__device__ bool same(const Call& a, const Call& b) {
  return a.count == b.count && a.element_bytes == b.element_bytes && a.kind == b.kind && a.dtype == b.dtype &&
         a.reduction == b.reduction;
}

// All threads of the block; false if the ranks cannot go on.
__device__ bool barrier(Loopback::Shared& shared, int rank, int ranks) {
  __shared__ bool go_on;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned turn = atomicAdd(&shared.passed[rank], 1u) + 1;
    const long long start = clock64();
    for (int r = 0; r < ranks; ++r)
      while (static_cast<int>(atomicAdd(&shared.passed[r], 0u) - turn) < 0 &&
             atomicAdd(&shared.failure, 0u) == kNone)
        if (clock64() - start > kPatience) atomicCAS(&shared.failure, kNone, kNobodyCame);
    __threadfence();
    go_on = atomicAdd(&shared.failure, 0u) == kNone;
  }
  __syncthreads();
  return go_on;
}

__device__ float load(const Call& call, long long i) {
  return call.dtype == DType::f32 ? reinterpret_cast<const volatile float*>(call.whole)[i]
                                  : __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(call.whole)[i]);
}

__device__ void reduce_element(const Loopback::Shared& shared, int rank, int ranks, long long i) {
  const Call& mine = shared.calls[rank];
  if (mine.dtype == DType::u64) {
    unsigned long long total = 0;
    for (int r = 0; r < ranks; ++r)
      total += reinterpret_cast<const volatile unsigned long long*>(shared.calls[r].whole)[i];
    reinterpret_cast<unsigned long long*>(mine.whole)[i] = total;
    return;
  }
  const float factor = mine.reduction == Reduction::average ? 1.0f / static_cast<float>(ranks) : 1.0f;
  float result = __fmul_rn(load(shared.calls[0], i), factor);
  for (int r = 1; r < ranks; ++r) {
    const float other = __fmul_rn(load(shared.calls[r], i), factor);
    if (mine.reduction != Reduction::max) {
      result = __fadd_rn(result, other);
    } else if (isnan(other) || other > result) {
      result = other;
    }
  }
  if (mine.dtype == DType::f32) {
    reinterpret_cast<float*>(mine.whole)[i] = result;
  } else {
    reinterpret_cast<__nv_bfloat16*>(mine.whole)[i] = __float2bfloat16_rn(result);
  }
}

// Copies the elements [first, end) that `owner` has.
__device__ void take(const Loopback::Shared& shared, int rank, int owner, long long first, long long end) {
  const Call& mine = shared.calls[rank];
  const auto* source = const_cast<const volatile std::byte*>(shared.calls[owner].whole);
  for (long long b = first * mine.element_bytes + threadIdx.x; b < end * mine.element_bytes; b += blockDim.x)
    mine.whole[b] = source[b];
}

// Shard r of a bucket is elements [r * share, (r + 1) * share); of an all-reduce it is what rank r reduces. A
// rank's own shard is read by no other rank before it is reduced.
__global__ void collective(Loopback::Shared* shared, int rank, int ranks, Call call) {
  if (threadIdx.x == 0) shared->calls[rank] = call;
  if (!barrier(*shared, rank, ranks)) return;
  for (int r = 0; r < ranks; ++r)
    if (!same(call, shared->calls[r])) {
      atomicCAS(&shared->failure, kNone, kDisagree);
      return;
    }
  const long long share = call.kind == Kind::all_reduce ? (call.count + ranks - 1) / ranks : call.count;
  const long long all = call.kind == Kind::all_reduce ? call.count : call.count * ranks;
  if (call.kind != Kind::all_gather) {
    const long long end = min((rank + 1) * share, all);
    for (long long i = rank * share + threadIdx.x; i < end; i += blockDim.x)
      reduce_element(*shared, rank, ranks, i);
    if (call.kind == Kind::all_reduce && !barrier(*shared, rank, ranks)) return;
  }
  if (call.kind != Kind::reduce_scatter)
    for (int owner = 0; owner < ranks; ++owner)
      if (owner != rank) take(*shared, rank, owner, min(owner * share, all), min((owner + 1) * share, all));
  barrier(*shared, rank, ranks);  // nobody writes what another still reads
}

class LoopbackCommunicator : public Communicator {
 public:
  LoopbackCommunicator(Loopback::Shared* shared, int rank, int ranks)
      : shared_(shared), rank_(rank), ranks_(ranks) {
    check(cudaEventCreateWithFlags(&last_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    check(cudaEventCreateWithFlags(&last_captured_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~LoopbackCommunicator() override {
    cudaEventDestroy(last_);
    cudaEventDestroy(last_captured_);
  }

  void submit(const OpType& type, const void* op, const CudaMemory& memory, cudaStream_t stream) override {
    const CollectiveCall what = describe_collective(type, op);
    Call call{};
    call.whole = memory.data(collective_ranges(type, op).whole);
    call.count = what.count;
    call.element_bytes = static_cast<int>(size_of(what.dtype));
    call.kind = &type == &op_type<AllGather>()       ? Kind::all_gather
                : &type == &op_type<ReduceScatter>() ? Kind::reduce_scatter
                                                     : Kind::all_reduce;
    call.dtype = what.dtype;
    call.reduction = what.reduction;
    follow_the_last(stream);
    collective<<<1, 256, 0, stream>>>(shared_, rank_, ranks_, call);
    check(cudaGetLastError(), type.name);
    check(cudaEventRecord(capturing_ ? last_captured_ : last_, stream), "cudaEventRecord");
  }

 private:
  void follow_the_last(cudaStream_t stream) {
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    check(cudaStreamGetCaptureInfo(stream, &status, &id, nullptr, nullptr, nullptr, nullptr),
          "cudaStreamGetCaptureInfo");
    capturing_ = status == cudaStreamCaptureStatusActive;
    if (!capturing_) {
      check(cudaStreamWaitEvent(stream, last_, 0), "cudaStreamWaitEvent");
    } else if (id == capture_) {
      check(cudaStreamWaitEvent(stream, last_captured_, 0), "cudaStreamWaitEvent");
    }
    if (capturing_) capture_ = id;
  }

  Loopback::Shared* shared_;
  int rank_;
  int ranks_;
  cudaEvent_t last_ = nullptr;           // collective outside of captures
  cudaEvent_t last_captured_ = nullptr;  // in the capture with this id
  unsigned long long capture_ = 0;
  bool capturing_ = false;
};

}  // namespace

Loopback::Loopback(int ranks) : ranks_(ranks) {
  if (ranks > kMaxRanks)
    throw RuntimeError(Error::invalid_value, "at most " + std::to_string(kMaxRanks) + " ranks share a GPU");
  check(cudaMalloc(&shared_, sizeof(Shared)), "cudaMalloc");
  check(cudaMemset(shared_, 0, sizeof(Shared)), "cudaMemset");
}

Loopback::~Loopback() {
  cudaFree(shared_);
}

std::unique_ptr<Communicator> Loopback::communicator(int rank) {
  return std::make_unique<LoopbackCommunicator>(shared_, rank, ranks_);
}

std::string Loopback::failure() const {
  Shared now;
  check(cudaMemcpy(&now, shared_, sizeof now, cudaMemcpyDeviceToHost), "cudaMemcpy");
  if (now.failure == kNone) return {};
  std::string text = now.failure == kDisagree ? "ranks disagree on a collective"
                                              : "a rank did not come to a collective within two seconds";
  for (int r = 0; r < ranks_; ++r)
    text += (r == 0 ? "; barriers passed: " : ", ") + std::to_string(now.passed[r]);
  return text;
}

}  // namespace gatherfuzz
