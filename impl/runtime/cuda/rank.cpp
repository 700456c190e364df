#include "impl/runtime/cuda/rank.h"

#include <algorithm>
#include <cmath>

#include "impl/runtime/cuda/check.h"
#include "impl/runtime/cuda/delay.h"

namespace gatherfuzz {

namespace {

cudaStreamCaptureMode cuda_mode(CaptureMode mode) {
  return mode == CaptureMode::global          ? cudaStreamCaptureModeGlobal
         : mode == CaptureMode::thread_local_ ? cudaStreamCaptureModeThreadLocal
                                              : cudaStreamCaptureModeRelaxed;
}

CaptureMode contract_mode(cudaStreamCaptureMode mode) {
  return mode == cudaStreamCaptureModeGlobal        ? CaptureMode::global
         : mode == cudaStreamCaptureModeThreadLocal ? CaptureMode::thread_local_
                                                    : CaptureMode::relaxed;
}

}  // namespace

CudaRank::CudaRank(int rank, int ranks, std::shared_ptr<Communicator> communicator, uint64_t delay_seed)
    : rank_(rank), ranks_(ranks), communicator_(std::move(communicator)), delay_seed_(delay_seed) {
  streams_.push_back(cudaStreamLegacy);
  check(cudaStreamCreateWithFlags(&private_stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  check(cudaMallocHost(&staging_, sizeof(float)), "cudaMallocHost");
}

CudaRank::~CudaRank() {
  end_captures();
  for (const cudaGraphExec_t graph : graphs_)
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  for (const cudaEvent_t event : events_) cudaEventDestroy(event);
  for (std::size_t s = 1; s < streams_.size(); ++s) cudaStreamDestroy(streams_[s]);
  cudaStreamDestroy(private_stream_);
  for (BufferId b = 1; b < memory_.size(); ++b)
    if (memory_.alive(b)) cudaFree(memory_.take(b));
  cudaFreeHost(staging_);
}

void CudaRank::call(const std::function<void()>& f) const {
  if (host_thread_ == 0) {
    f();
  } else {
    host_threads_[static_cast<std::size_t>(host_thread_) - 1]->call(f);
  }
}

void CudaRank::on_host_thread(int thread) {
  if (thread < 0) throw RuntimeError(Error::invalid_value, "host threads are numbered from 0");
  while (host_threads_.size() < static_cast<std::size_t>(thread))
    host_threads_.push_back(std::make_unique<HostThread>());
  host_thread_ = thread;
}

cudaStream_t CudaRank::stream_at(StreamId stream) const {
  if (stream >= streams_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such stream");
  return streams_[stream];
}

cudaEvent_t CudaRank::event_at(EventId event) const {
  if (event >= events_.size()) throw RuntimeError(Error::invalid_resource_handle, "no such event");
  return events_[event];
}

cudaGraphExec_t CudaRank::graph_at(GraphId graph) const {
  if (graph == 0 || graph > graphs_.size() || graphs_[graph - 1u] == nullptr)
    throw RuntimeError(Error::invalid_value, "no such graph");
  return graphs_[graph - 1u];
}

std::byte* CudaRank::make_memory(const char* name, uint32_t bytes, Fill fill) {
  void* data = nullptr;
  call([&] {
    check(cudaMalloc(&data, std::max(bytes, 1u)), name);
    // What is uninitialized must not look like a value: all bits set is a NaN in every float format.
    check(cudaMemsetAsync(data, fill == Fill::zero ? 0 : 0xFF, bytes, private_stream_), "cudaMemsetAsync");
    check(cudaStreamSynchronize(private_stream_), "cudaStreamSynchronize");
  });
  return static_cast<std::byte*>(data);
}

BufferId CudaRank::allocate(const char* name, uint32_t bytes, Fill fill) {
  return memory_.add(make_memory(name, bytes, fill), bytes);
}

void CudaRank::allocate_again(BufferId buffer, Fill fill) {
  if (buffer == 0 || buffer >= memory_.size() || memory_.alive(buffer))
    throw RuntimeError(Error::invalid_value, "memory again for a buffer that was not released");
  memory_.put(buffer, make_memory("memory again", memory_.bytes(buffer), fill));
}

void CudaRank::release(BufferId buffer) {
  if (!memory_.alive(buffer))
    throw RuntimeError(Error::invalid_value, "release of a buffer that is not allocated");
  Operand start;
  start.buffer = buffer;
  call([&] { check(cudaFree(memory_.data(start)), "cudaFree"); });  // waits for what is queued
  memory_.take(buffer);
}

StreamId CudaRank::create_stream(const char* name, StreamKind kind) {
  cudaStream_t stream = nullptr;
  const unsigned flags = kind == StreamKind::blocking ? cudaStreamDefault : cudaStreamNonBlocking;
  call([&] { check(cudaStreamCreateWithFlags(&stream, flags), name); });
  streams_.push_back(stream);
  return static_cast<StreamId>(streams_.size() - 1);
}

EventId CudaRank::create_event() {
  cudaEvent_t event = nullptr;
  call([&] { check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags"); });
  events_.push_back(event);
  return static_cast<EventId>(events_.size() - 1);
}

void CudaRank::check_operands(const OpType& type, const void* op) const {
  for (const OperandField& field : type.operands) {
    const auto& operand = *reinterpret_cast<const Operand*>(static_cast<const std::byte*>(op) + field.offset);
    if (!memory_.is_allocated(operand))
      throw RuntimeError(Error::illegal_address,
                         std::string(type.name) + " names memory that is not allocated");
  }
}

// Mostly none, and often longer than launching the next few ops takes.
void CudaRank::delay(cudaStream_t stream) {
  static constexpr int kMicroseconds[] = {0, 0, 100, 300};
  if (delay_seed_ == 0) return;
  // splitmix64
  uint64_t z = delay_seed_ * 1'000'003 + static_cast<uint64_t>(rank_) * 1009 + ++launches_;
  z *= 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  if (const int by = kMicroseconds[(z ^ (z >> 31)) & 3]; by > 0) launch_delay(by, stream);
}

void CudaRank::submit(StreamId stream, const OpType& type, const void* op, Site) {
  const cudaStream_t s = stream_at(stream);
  check_operands(type, op);
  if (type.collective()) {
    if (describe_collective(type, op).count == 0) return;
    check_layout(type, op, rank_, ranks_);
    call([&] {
      delay(s);
      communicator_->submit(type, op, memory_, s);
    });
    return;
  }
  const LaunchKernel kernel = find_kernel(type);
  if (kernel == nullptr)
    throw RuntimeError(Error::not_supported, std::string(type.name) + " has no CUDA kernel");
  call([&] {
    delay(s);
    kernel(op, memory_, s);
    check(cudaGetLastError(), type.name);
  });
}

void CudaRank::record(EventId event, StreamId stream, Site) {
  const cudaEvent_t e = event_at(event);
  const cudaStream_t s = stream_at(stream);
  call([&] { check(cudaEventRecord(e, s), "cudaEventRecord"); });
}

void CudaRank::wait(StreamId stream, EventId event, Site) {
  const cudaEvent_t e = event_at(event);
  const cudaStream_t s = stream_at(stream);
  call([&] { check(cudaStreamWaitEvent(s, e, 0), "cudaStreamWaitEvent"); });
}

bool CudaRank::query(EventId event) {
  const cudaEvent_t e = event_at(event);
  cudaError_t result = cudaSuccess;
  call([&] {
    result = cudaEventQuery(e);
    if (result == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
    } else {
      check(result, "cudaEventQuery");
    }
  });
  return result == cudaSuccess;
}

void CudaRank::synchronize(EventId event) {
  const cudaEvent_t e = event_at(event);
  call([&] { check(cudaEventSynchronize(e), "cudaEventSynchronize"); });
}

void CudaRank::synchronize_stream(StreamId stream) {
  const cudaStream_t s = stream_at(stream);
  call([&] { check(cudaStreamSynchronize(s), "cudaStreamSynchronize"); });
}

HostScalar CudaRank::read(StreamId stream, const Operand& scalar, Site) {
  const cudaStream_t s = stream_at(stream);
  if (scalar.bytes != sizeof(float) || !memory_.is_allocated(scalar))
    throw RuntimeError(Error::illegal_address, "a host read of what is not one allocated float");
  call([&] {
    check(cudaMemcpyAsync(staging_, memory_.data(scalar), sizeof(float), cudaMemcpyDeviceToHost, s),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(s), "cudaStreamSynchronize");
  });
  HostScalar result;
  result.value = *staging_;
  result.nonfinite = !std::isfinite(*staging_);
  result.done = true;
  return result;
}

CaptureMode CudaRank::exchange_capture_mode(CaptureMode mode) {
  cudaStreamCaptureMode swapped = cuda_mode(mode);
  call([&] { check(cudaThreadExchangeStreamCaptureMode(&swapped), "cudaThreadExchangeStreamCaptureMode"); });
  return contract_mode(swapped);
}

void CudaRank::begin_capture(StreamId stream, CaptureMode mode) {
  const cudaStream_t s = stream_at(stream);
  call([&] { check(cudaStreamBeginCapture(s, cuda_mode(mode)), "cudaStreamBeginCapture"); });
  open_.push_back({stream, host_thread_});
}

GraphId CudaRank::end_capture(StreamId stream) {
  const cudaStream_t s = stream_at(stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  call([&] {
    check(cudaStreamEndCapture(s, &graph), "cudaStreamEndCapture");
    const cudaError_t result = cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    check(result, "cudaGraphInstantiate");
  });
  graphs_.push_back(exec);
  return static_cast<GraphId>(graphs_.size());
}

bool CudaRank::capturing(StreamId stream) const {
  const cudaStream_t s = stream_at(stream);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  call([&] { check(cudaStreamIsCapturing(s, &status), "cudaStreamIsCapturing"); });
  return status != cudaStreamCaptureStatusNone;
}

void CudaRank::launch_graph(StreamId stream, GraphId graph, Site) {
  const cudaGraphExec_t exec = graph_at(graph);
  const cudaStream_t s = stream_at(stream);
  call([&] { check(cudaGraphLaunch(exec, s), "cudaGraphLaunch"); });
}

void CudaRank::destroy_graph(GraphId graph) {
  const cudaGraphExec_t exec = graph_at(graph);
  call([&] { check(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy"); });
  graphs_[graph - 1u] = nullptr;
}

void CudaRank::mark(StreamId, const Mark&) {
  throw RuntimeError(Error::not_supported, "marks are not delivered by this runtime");
}

void CudaRank::end_captures() {
  for (const OpenCapture& open : open_) {
    on_host_thread(open.host_thread);
    call([&] {
      cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
      cudaGraph_t graph = nullptr;
      if (cudaStreamIsCapturing(streams_[open.stream], &status) != cudaSuccess ||
          status != cudaStreamCaptureStatusNone)
        static_cast<void>(cudaStreamEndCapture(streams_[open.stream], &graph));
      if (graph != nullptr) cudaGraphDestroy(graph);
      static_cast<void>(cudaGetLastError());
    });
  }
  open_.clear();
  on_host_thread(0);
}

std::vector<std::byte> CudaRank::read_bytes(const Operand& range) const {
  std::vector<std::byte> bytes(range.bytes);
  check(cudaMemcpyAsync(bytes.data(), memory_.data(range), range.bytes, cudaMemcpyDeviceToHost,
                        private_stream_),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(private_stream_), "cudaStreamSynchronize");
  return bytes;
}

}  // namespace gatherfuzz
