// What the facts share: owners of CUDA objects, names of results, and captures.
//
// An owner's destructor waits for the work of its streams and ends a capture that is left, so that one fact
// cannot disturb the next. Owners are made before a capture begins: making one may be prohibited in it.
// One that cannot be made throws: a kernel given no memory would leave an error that lasts.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <string>

#include "properties/conformance/observations.h"

namespace gatherfuzz {

// The name of a result; clears the thread's last error, so that it is not met again by a later call.
std::string name(cudaError_t error);
std::string name(cudaStreamCaptureStatus status);
std::string name(cudaStreamCaptureMode mode);

inline constexpr std::array capture_modes = {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                             cudaStreamCaptureModeRelaxed};

void expect_ok(Observations& o, const std::string& what, cudaError_t found);
void expect_error(Observations& o, const std::string& what, cudaError_t expected, cudaError_t found);
void expect_value(Observations& o, const std::string& what, int expected, int found);

// The first of some results that is an error, else success.
cudaError_t first_error(std::initializer_list<cudaError_t> results);

class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking, int priority = 0);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// One int in device memory, 0 at first. get and set wait for the whole device; not to be used in a capture.
class DeviceInt {
 public:
  DeviceInt();
  ~DeviceInt();
  DeviceInt(const DeviceInt&) = delete;
  DeviceInt& operator=(const DeviceInt&) = delete;
  operator int*() const { return at_; }
  int get() const;  // -1 where it cannot be read
  void set(int value);

 private:
  int* at_ = nullptr;
};

enum class BufferKind { device, pinned, managed };

class Buffer {
 public:
  Buffer(BufferKind kind, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  template <typename T = void>
  T* at() const {
    return static_cast<T*>(at_);
  }

 private:
  BufferKind kind_;
  void* at_ = nullptr;
};

class Graph {
 public:
  // Takes what a capture or a call made; null owns nothing.
  explicit Graph(cudaGraph_t graph = nullptr) : graph_(graph) {}
  Graph(Graph&& other) : graph_(other.graph_) { other.graph_ = nullptr; }
  ~Graph() { destroy(); }
  Graph& operator=(const Graph&) = delete;
  operator cudaGraph_t() const { return graph_; }
  void destroy();

 private:
  cudaGraph_t graph_;
};

class Exec {
 public:
  explicit Exec(cudaGraph_t graph, unsigned long long flags = 0);
  ~Exec() { destroy(); }
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  operator cudaGraphExec_t() const { return exec_; }
  cudaError_t made() const { return made_; }
  cudaError_t launch(cudaStream_t stream) const;
  cudaError_t run(cudaStream_t stream) const;  // launch, then wait for the stream
  void destroy();

 private:
  cudaGraphExec_t exec_ = nullptr;
  cudaError_t made_;  // after what it fills in
};

// Captures what `work` enqueues in `stream`; one observation: no error. Null after an error.
Graph capture(Observations& o, cudaStream_t stream, const std::function<cudaError_t()>& work,
              cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal);

// The kinds of a graph's nodes in alphabetic order, e.g. "host kernel kernel"; "no nodes", "no graph".
std::string node_kinds(cudaGraph_t graph);
// The only node of a kind (null if there is none).
cudaGraphNode_t node_of_kind(cudaGraph_t graph, cudaGraphNodeType kind);
int edge_count(cudaGraph_t graph);

std::string capture_status(cudaStream_t stream);  // "none", "active", "invalidated", else an error's name

// `other` waits for the work of `origin`, and so becomes part of its capture.
cudaError_t fork(cudaStream_t origin, cudaEvent_t event, cudaStream_t other);

// What happens to a call, and to a capture of one kernel that goes on meanwhile in a new stream.
struct CaptureTrial {
  cudaStreamCaptureMode mode;
  unsigned stream_flags = cudaStreamNonBlocking;
  bool other_thread = false;  // the call comes from a thread that captures nothing
};
std::string during_capture(const CaptureTrial& trial, const std::function<cudaError_t(cudaStream_t)>& call);

// The outcomes of during_capture that the rules know.
std::string allowed();
std::string harmless(cudaError_t error);    // fails, and the capture goes on
std::string prohibited(cudaError_t error);  // fails, and the capture is invalidated
std::string invalidated_silently();         // `call` returned success, as a library's caller may

}  // namespace gatherfuzz
