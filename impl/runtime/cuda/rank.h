// One rank of a CudaWorld: the contract's calls as calls of CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "impl/runtime/cuda/communicator.h"
#include "impl/runtime/cuda/host_thread.h"
#include "impl/runtime/cuda/kernels.h"
#include "impl/runtime/runtime.h"

namespace gatherfuzz {

class CudaRank : public Runtime {
 public:
  CudaRank(int rank, int ranks, std::shared_ptr<Communicator> communicator, uint64_t delay_seed);
  ~CudaRank() override;

  int rank() const override { return rank_; }
  int world_size() const override { return ranks_; }
  BufferId allocate(const char* name, uint32_t bytes, Fill fill) override;
  void release(BufferId buffer) override;
  void allocate_again(BufferId buffer, Fill fill) override;
  StreamId create_stream(const char* name, StreamKind kind) override;
  EventId create_event() override;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override;
  void record(EventId event, StreamId stream, Site site) override;
  void wait(StreamId stream, EventId event, Site site) override;
  bool query(EventId event) override;
  void synchronize(EventId event) override;
  void synchronize_stream(StreamId stream) override;
  HostScalar read(StreamId stream, const Operand& scalar, Site site) override;
  void on_host_thread(int thread) override;
  CaptureMode exchange_capture_mode(CaptureMode mode) override;
  void begin_capture(StreamId stream, CaptureMode mode) override;
  GraphId end_capture(StreamId stream) override;
  bool capturing(StreamId stream) const override;
  void launch_graph(StreamId stream, GraphId graph, Site site) override;
  void destroy_graph(GraphId graph) override;
  // Nothing observes a GPU rank yet: throws not_supported.
  void mark(StreamId stream, const Mark& mark) override;

  // Ends every capture that is still open, each by its own thread; what they captured is dropped.
  void end_captures();
  // A copy of the bytes, once all that was enqueued has ended.
  std::vector<std::byte> read_bytes(const Operand& range) const;

 private:
  struct OpenCapture {
    StreamId stream = 0;
    int host_thread = 0;
  };

  cudaStream_t stream_at(StreamId stream) const;
  cudaEvent_t event_at(EventId event) const;
  cudaGraphExec_t graph_at(GraphId graph) const;
  std::byte* make_memory(const char* name, uint32_t bytes, Fill fill);
  // Makes the call on the current host thread.
  void call(const std::function<void()>& f) const;
  void delay(cudaStream_t stream);
  void check_operands(const OpType& type, const void* op) const;

  int rank_;
  int ranks_;
  std::shared_ptr<Communicator> communicator_;
  uint64_t delay_seed_;
  uint64_t launches_ = 0;
  CudaMemory memory_;
  std::vector<cudaStream_t> streams_;
  std::vector<cudaEvent_t> events_;
  std::vector<cudaGraphExec_t> graphs_;
  std::vector<OpenCapture> open_;
  cudaStream_t private_stream_ = nullptr;  // for fills and host reads that no capture may see
  float* staging_ = nullptr;               // pinned
  int host_thread_ = 0;
  mutable std::vector<std::unique_ptr<HostThread>> host_threads_;  // from 1 on
};

}  // namespace gatherfuzz
