#include "impl/runtime/cuda/world.h"

#include <exception>
#include <thread>

#include "impl/runtime/cuda/check.h"
#include "impl/runtime/cuda/rank.h"

namespace gatherfuzz {

CudaWorld::CudaWorld(CudaWorldOptions options) : options_(std::move(options)) {
  if (options_.ranks > 1 || !options_.communicator) loopback_ = std::make_unique<Loopback>(options_.ranks);
  for (int r = 0; r < options_.ranks; ++r) {
    std::shared_ptr<Communicator> communicator = options_.communicator;
    if (loopback_) communicator = loopback_->communicator(r);
    ranks_.push_back(
        std::make_unique<CudaRank>(r, options_.ranks, std::move(communicator), options_.delay_seed));
  }
}

CudaWorld::~CudaWorld() = default;

void CudaWorld::run(const std::function<void(Runtime&)>& body) {
  std::vector<std::exception_ptr> errors(ranks_.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks_.size(); ++r)
    threads.emplace_back([this, r, &body, &errors] {
      try {
        body(*ranks_[r]);
      } catch (...) {
        errors[r] = std::current_exception();
      }
      ranks_[r]->end_captures();
    });
  for (std::thread& thread : threads) thread.join();
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (loopback_)
    if (const std::string failure = loopback_->failure(); !failure.empty()) throw Deadlock{failure};
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

std::vector<std::byte> CudaWorld::read(int rank, const Operand& range) const {
  return ranks_[static_cast<std::size_t>(rank)]->read_bytes(range);
}

int count_gpus() {
  int n = 0;
  if (cudaGetDeviceCount(&n) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  return n;
}

}  // namespace gatherfuzz
