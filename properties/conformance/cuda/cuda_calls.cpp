#include "properties/conformance/cuda/cuda_calls.h"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

#include "properties/conformance/cuda/fact_kernels.h"

namespace gatherfuzz {
namespace {

const char* kind_name(cudaGraphNodeType kind) {
  switch (kind) {
    case cudaGraphNodeTypeKernel:
      return "kernel";
    case cudaGraphNodeTypeMemcpy:
      return "memcpy";
    case cudaGraphNodeTypeMemset:
      return "memset";
    case cudaGraphNodeTypeHost:
      return "host";
    case cudaGraphNodeTypeGraph:
      return "graph";
    case cudaGraphNodeTypeEmpty:
      return "empty";
    case cudaGraphNodeTypeWaitEvent:
      return "wait-event";
    case cudaGraphNodeTypeEventRecord:
      return "event-record";
    case cudaGraphNodeTypeMemAlloc:
      return "mem-alloc";
    case cudaGraphNodeTypeMemFree:
      return "mem-free";
    default:
      return "another";
  }
}

std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph) {
  size_t count = 0;
  if (graph == nullptr || cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess) return {};
  std::vector<cudaGraphNode_t> nodes(count);
  cudaGraphGetNodes(graph, nodes.data(), &count);
  return nodes;
}

cudaGraphNodeType kind_of(cudaGraphNode_t node) {
  cudaGraphNodeType kind = cudaGraphNodeTypeCount;
  cudaGraphNodeGetType(node, &kind);
  return kind;
}

void require(const char* what, cudaError_t made) {
  if (made != cudaSuccess) throw std::runtime_error(std::string("cannot make ") + what + ": " + name(made));
}

std::string outcome(const std::string& call, const std::string& status, const std::string& end) {
  return call + ", the capture is " + status + " and ends with " + end;
}

}  // namespace

std::string name(cudaError_t error) {
  cudaGetLastError();
  return cudaGetErrorName(error);
}

std::string name(cudaStreamCaptureStatus status) {
  if (status == cudaStreamCaptureStatusNone) return "none";
  return status == cudaStreamCaptureStatusActive ? "active" : "invalidated";
}

std::string name(cudaStreamCaptureMode mode) {
  if (mode == cudaStreamCaptureModeGlobal) return "global";
  return mode == cudaStreamCaptureModeThreadLocal ? "thread-local" : "relaxed";
}

void expect_ok(Observations& o, const std::string& what, cudaError_t found) {
  expect_error(o, what, cudaSuccess, found);
}

void expect_error(Observations& o, const std::string& what, cudaError_t expected, cudaError_t found) {
  o.expect(what, name(expected), name(found));
}

void expect_value(Observations& o, const std::string& what, int expected, int found) {
  o.expect(what, std::to_string(expected), std::to_string(found));
}

cudaError_t first_error(std::initializer_list<cudaError_t> results) {
  for (cudaError_t result : results) {
    if (result != cudaSuccess) return result;
  }
  return cudaSuccess;
}

Stream::Stream(unsigned flags, int priority) {
  require("a stream", cudaStreamCreateWithPriority(&stream_, flags, priority));
}

Stream::~Stream() {
  if (stream_ == nullptr) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream_, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone) {
    cudaGraph_t left = nullptr;
    cudaStreamEndCapture(stream_, &left);
    Graph ended(left);
  }
  cudaStreamSynchronize(stream_);
  cudaStreamDestroy(stream_);
  cudaGetLastError();
}

Event::Event() {
  require("an event", cudaEventCreate(&event_));
}

Event::~Event() {
  if (event_ != nullptr) cudaEventDestroy(event_);
  cudaGetLastError();
}

DeviceInt::DeviceInt() {
  require("device memory", cudaMalloc(reinterpret_cast<void**>(&at_), sizeof(int)));
  set(0);
}

DeviceInt::~DeviceInt() {
  cudaFree(at_);
  cudaGetLastError();
}

int DeviceInt::get() const {
  int value = -1;
  cudaDeviceSynchronize();
  cudaMemcpy(&value, at_, sizeof value, cudaMemcpyDeviceToHost);
  cudaGetLastError();
  return value;
}

void DeviceInt::set(int value) {
  cudaDeviceSynchronize();
  cudaMemcpy(at_, &value, sizeof value, cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();  // a copy from pageable memory may still be on its way
  cudaGetLastError();
}

Buffer::Buffer(BufferKind kind, size_t bytes) : kind_(kind) {
  if (kind == BufferKind::device) require("device memory", cudaMalloc(&at_, bytes));
  if (kind == BufferKind::pinned) require("pinned memory", cudaMallocHost(&at_, bytes));
  if (kind == BufferKind::managed)
    require("managed memory", cudaMallocManaged(&at_, bytes, cudaMemAttachGlobal));
}

Buffer::~Buffer() {
  if (kind_ == BufferKind::pinned) {
    cudaFreeHost(at_);
  } else {
    cudaFree(at_);
  }
  cudaGetLastError();
}

void Graph::destroy() {
  if (graph_ != nullptr) cudaGraphDestroy(graph_);
  graph_ = nullptr;
}

Exec::Exec(cudaGraph_t graph, unsigned long long flags)
    : made_(graph == nullptr ? cudaErrorInvalidValue : cudaGraphInstantiate(&exec_, graph, flags)) {
  if (made_ != cudaSuccess) exec_ = nullptr;
}

cudaError_t Exec::launch(cudaStream_t stream) const {
  return exec_ == nullptr ? cudaErrorInvalidValue : cudaGraphLaunch(exec_, stream);
}

cudaError_t Exec::run(cudaStream_t stream) const {
  const cudaError_t launched = launch(stream);
  const cudaError_t done = cudaStreamSynchronize(stream);
  return first_error({launched, done});
}

void Exec::destroy() {
  if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
  exec_ = nullptr;
}

Graph capture(Observations& o, cudaStream_t stream, const std::function<cudaError_t()>& work,
              cudaStreamCaptureMode mode) {
  cudaGraph_t graph = nullptr;
  const cudaError_t begun = cudaStreamBeginCapture(stream, mode);
  const cudaError_t worked = work();
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  expect_ok(o, "capture", first_error({begun, worked, ended}));
  Graph captured(graph);
  // Without all of its work a graph might use memory that it failed to allocate.
  if (worked != cudaSuccess) captured.destroy();
  return captured;
}

std::string node_kinds(cudaGraph_t graph) {
  if (graph == nullptr) return "no graph";
  std::vector<std::string> kinds;
  for (cudaGraphNode_t node : nodes_of(graph)) kinds.push_back(kind_name(kind_of(node)));
  if (kinds.empty()) return "no nodes";
  std::sort(kinds.begin(), kinds.end());
  std::string all;
  for (const std::string& kind : kinds) all += (all.empty() ? "" : " ") + kind;
  return all;
}

cudaGraphNode_t node_of_kind(cudaGraph_t graph, cudaGraphNodeType kind) {
  for (cudaGraphNode_t node : nodes_of(graph)) {
    if (kind_of(node) == kind) return node;
  }
  return nullptr;
}

int edge_count(cudaGraph_t graph) {
  size_t count = 0;
  if (graph == nullptr) return -1;
  // Without room for edges the call counts them only.
  if (cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count) != cudaSuccess) return -1;
  return static_cast<int>(count);
}

std::string capture_status(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t asked = cudaStreamIsCapturing(stream, &status);
  return asked == cudaSuccess ? name(status) : name(asked);
}

cudaError_t fork(cudaStream_t origin, cudaEvent_t event, cudaStream_t other) {
  const cudaError_t recorded = cudaEventRecord(event, origin);
  return recorded == cudaSuccess ? cudaStreamWaitEvent(other, event, cudaEventWaitDefault) : recorded;
}

std::string during_capture(const CaptureTrial& trial, const std::function<cudaError_t(cudaStream_t)>& call) {
  Stream stream(trial.stream_flags);
  const cudaError_t begun = cudaStreamBeginCapture(stream, trial.mode);
  const cudaError_t launched = launch_spin(0, stream);
  std::string called;
  if (trial.other_thread) {
    std::thread([&] { called = name(call(stream)); }).join();
  } else {
    called = name(call(stream));
  }
  const std::string status = capture_status(stream);
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  Graph captured(graph);
  if (begun != cudaSuccess || launched != cudaSuccess) return "no capture: " + name(begun);
  if (ended == cudaSuccess && node_kinds(captured) != "kernel") return "captured " + node_kinds(captured);
  return outcome(called, status, name(ended));
}

std::string allowed() {
  return harmless(cudaSuccess);
}

std::string harmless(cudaError_t error) {
  return outcome(name(error), "active", name(cudaSuccess));
}

std::string prohibited(cudaError_t error) {
  return outcome(name(error), "invalidated", name(cudaErrorStreamCaptureInvalidated));
}

std::string invalidated_silently() {
  return outcome(name(cudaSuccess), "invalidated", name(cudaErrorStreamCaptureInvalidated));
}

}  // namespace gatherfuzz
