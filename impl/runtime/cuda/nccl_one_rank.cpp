#include "impl/runtime/cuda/check.h"
#include "impl/runtime/cuda/communicator.h"

namespace gatherfuzz {

namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::u64:
      return ncclUint64;
    default:
      return ncclUint8;
  }
}

ncclRedOp_t nccl_reduction(Reduction reduction) {
  return reduction == Reduction::average ? ncclAvg : reduction == Reduction::max ? ncclMax : ncclSum;
}

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator() {
    ncclUniqueId id;
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    check(ncclCommInitRank(&comm_, 1, id, 0), "ncclCommInitRank");
  }
  ~NcclCommunicator() override { ncclCommDestroy(comm_); }

  void submit(const OpType& type, const void* op, const CudaMemory& memory, cudaStream_t stream) override {
    const CollectiveCall call = describe_collective(type, op);
    const CollectiveRanges ranges = collective_ranges(type, op);
    std::byte* own = memory.data(ranges.own);
    std::byte* whole = memory.data(ranges.whole);
    const auto count = static_cast<std::size_t>(call.count);
    if (&type == &op_type<AllGather>()) {
      check(ncclAllGather(own, whole, ranges.own.bytes, ncclUint8, comm_, stream), "ncclAllGather");
    } else if (&type == &op_type<ReduceScatter>()) {
      check(ncclReduceScatter(whole, own, count, nccl_type(call.dtype), nccl_reduction(call.reduction), comm_,
                              stream),
            "ncclReduceScatter");
    } else {
      check(ncclAllReduce(whole, whole, count, nccl_type(call.dtype), nccl_reduction(call.reduction), comm_,
                          stream),
            "ncclAllReduce");
    }
  }

 private:
  ncclComm_t comm_ = nullptr;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_one_rank() {
  return std::make_unique<NcclCommunicator>();
}

}  // namespace gatherfuzz
