// What carries a rank's collectives out on a GPU: NCCL, or kernels that several ranks of one GPU run
// together.
#pragma once

#include <memory>
#include <vector>

#include "impl/runtime/collective.h"
#include "impl/runtime/cuda/kernels.h"

namespace gatherfuzz {

class Communicator {
 public:
  virtual ~Communicator() = default;
  // Enqueues a collective that has elements. One thread at a time.
  virtual void submit(const OpType& type, const void* op, const CudaMemory& memory, cudaStream_t stream) = 0;
};

// NCCL with one rank, this process.
std::unique_ptr<Communicator> make_nccl_one_rank();

// Ranks that share a GPU. A collective is one block a rank; the blocks wait for each other on the device, so
// all of them must be able to run at once. A rank's collectives run in order of issue, as those of one NCCL
// communicator do. Reductions add in ascending rank order in FP32 and round once. Where ranks disagree, or
// one does not come within two seconds, nothing is written from then on and `failure` says so.
class Loopback {
 public:
  static constexpr int kMaxRanks = 8;

  explicit Loopback(int ranks);
  ~Loopback();
  Loopback(const Loopback&) = delete;
  Loopback& operator=(const Loopback&) = delete;

  std::unique_ptr<Communicator> communicator(int rank);
  // Empty if all is well. Everything enqueued must have ended.
  std::string failure() const;

  struct Shared;  // on the device

 private:
  int ranks_;
  Shared* shared_ = nullptr;
};

}  // namespace gatherfuzz
