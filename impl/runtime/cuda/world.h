// Ranks on one GPU that run the contract for real. Each rank's host code runs in a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "impl/runtime/cuda/communicator.h"
#include "impl/runtime/runtime.h"

namespace gatherfuzz {

struct CudaWorldOptions {
  int ranks = 1;
  // Carries the collectives of a single rank out; null: loopback, as for several ranks.
  std::shared_ptr<Communicator> communicator;
  // Delays ops by an amount drawn from this; 0: none.
  uint64_t delay_seed = 0;
};

class CudaRank;

class CudaWorld {
 public:
  explicit CudaWorld(CudaWorldOptions options);
  ~CudaWorld();
  CudaWorld(const CudaWorld&) = delete;
  CudaWorld& operator=(const CudaWorld&) = delete;

  // Runs `body` as every rank's host code and until all work has ended; captures that it left open are ended.
  // Throws what a rank threw (the lowest rank's first), or Deadlock. Buffers live on until the world does.
  void run(const std::function<void(Runtime&)>& body);

  // A copy of a rank's bytes; nothing may be running.
  std::vector<std::byte> read(int rank, const Operand& range) const;

 private:
  CudaWorldOptions options_;
  std::unique_ptr<Loopback> loopback_;
  std::vector<std::unique_ptr<CudaRank>> ranks_;
};

// How many GPUs there are; 0 also where there is no driver.
int count_gpus();

}  // namespace gatherfuzz
