#include "properties/conformance/gpu.h"

#include <cublas_v2.h>

#include <cstring>

#include "impl/runtime/cuda/check.h"
#include "impl/runtime/cuda/world.h"

namespace gatherfuzz {

namespace {

class Gpu : public Machine {
 public:
  explicit Gpu(CudaWorldOptions options) : world_(std::move(options)) {}

  void run(const std::function<void(Runtime&)>& body) override { world_.run(body); }
  float read(int rank, const View<float>& view) override { return values(rank, view).at(0); }
  bool holds(int rank, const View<float>& view, int value) override {
    for (const float found : values(rank, view))
      if (found != static_cast<float>(value)) return false;
    return true;
  }

 private:
  std::vector<float> values(int rank, const View<float>& view) const {
    const std::vector<std::byte> bytes = world_.read(rank, view);
    std::vector<float> list(view.count());
    std::memcpy(list.data(), bytes.data(), bytes.size());
    return list;
  }

  CudaWorld world_;
};

// "13.0" of 13000.
std::string dotted(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string why_no_gpu() {
  return count_gpus() > 0 ? "" : "there is no GPU here, or no driver";
}

std::string describe_gpu() {
  cudaDeviceProp properties{};
  int driver = 0, runtime = 0, nccl = 0;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  check(ncclGetVersion(&nccl), "ncclGetVersion");
  return std::string(properties.name) + ", compute capability " + std::to_string(properties.major) + "." +
         std::to_string(properties.minor) + ", CUDA runtime " + dotted(runtime) + ", driver's CUDA " +
         dotted(driver) + ", NCCL " + std::to_string(nccl / 10000) + "." + std::to_string(nccl / 100 % 100) +
         "." + std::to_string(nccl % 100) + ", cuBLAS " + std::to_string(CUBLAS_VERSION);
}

MakeMachine gpu() {
  // One communicator serves all: making one takes longer than all cases.
  return [nccl = std::shared_ptr<Communicator>(make_nccl_one_rank())](int ranks, int turn) {
    CudaWorldOptions options;
    options.ranks = ranks;
    if (ranks == 1) options.communicator = nccl;
    options.delay_seed = static_cast<uint64_t>(turn);
    return std::make_unique<Gpu>(options);
  };
}

std::vector<Fact> all_facts() {
  std::vector<Fact> all;
  // What a library does at its first use is seen once a process.
  for (const auto& table : {library_facts(), event_facts(), memory_facts(), graph_facts()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace gatherfuzz
