// The Runtime contract: one rank's view of a machine with streams, events, graphs and collectives. The
// training code is written once against it; symbolic, host and cuda runtimes implement it.
//
// Ordering: ops on one stream run in order of launch; across streams only events order them. Ownership:
// buffers live until `release`; ops and their scalars are copied at launch. Errors: every call throws
// RuntimeError with CUDA's error name and then has enqueued nothing. A rank belongs to the thread that runs
// its body; what other threads of a process would do is asked for with `on_host_thread`.
#pragma once

#include <cstdint>

#include "impl/runtime/error.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

using StreamId = uint16_t;  // 0 is the legacy default stream
using EventId = uint16_t;
using GraphId = uint16_t;  // an executable graph; 0 is no graph

enum class Fill : uint8_t { uninitialized, zero };
enum class CaptureMode : uint8_t { global, thread_local_, relaxed };
enum class StreamKind : uint8_t { blocking, non_blocking };

// What the host got to know of one scalar in memory. On `symbolic` there are no numbers: value is 0, and
// `nonfinite` is the taint.
struct HostScalar {
  double value = 0.0;
  bool nonfinite = false;
  bool done = false;

  bool flagged() const { return nonfinite || value != 0.0; }
};

// A boundary in a rank's host code, delivered to the observer when the stream reaches it. Codes belong to the
// caller.
struct Mark {
  uint32_t code = 0;
  uint32_t detail = 0;
  uint64_t value = 0;
};

// Thrown by a world of ranks: every rank waits for a collective that cannot happen.
struct Deadlock {
  std::string who_waits_for_whom;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  // Bytes of a buffer are zero or uninitialized as asked. `name` must outlive the runtime.
  virtual BufferId allocate(const char* name, uint32_t bytes, Fill fill) = 0;
  virtual void release(BufferId buffer) = 0;
  // Memory again for a released buffer, of the size it had and under the id it had, but at another address:
  // graphs captured earlier name memory that is gone, and may not be launched.
  virtual void allocate_again(BufferId buffer, Fill fill) = 0;

  virtual StreamId create_stream(const char* name, StreamKind kind = StreamKind::non_blocking) = 0;
  virtual EventId create_event() = 0;

  template <class Op>
  void launch(StreamId stream, const Op& op, Site site = Site::here()) {
    submit(stream, op_type<Op>(), &op, site);
  }
  virtual void submit(StreamId stream, const OpType& type, const void* op, Site site) = 0;

  virtual void record(EventId event, StreamId stream, Site site = Site::here()) = 0;
  virtual void wait(StreamId stream, EventId event, Site site = Site::here()) = 0;
  // True if the last record has completed; an event never recorded is complete.
  virtual bool query(EventId event) = 0;
  virtual void synchronize(EventId event) = 0;
  virtual void synchronize_stream(StreamId stream) = 0;

  // Waits until the stream has produced the scalar (a float) and returns it.
  virtual HostScalar read(StreamId stream, const Operand& scalar, Site site = Site::here()) = 0;

  // The host thread of the rank that makes the calls from now on; 0 at first. A capture belongs to the thread
  // that began it. Threads take turns; their calls never overlap.
  virtual void on_host_thread(int thread) = 0;
  // Sets the calling thread's own mode, which at first is global, and returns the old one: what the thread
  // may do while captures are under way (cudaThreadExchangeStreamCaptureMode).
  virtual CaptureMode exchange_capture_mode(CaptureMode mode) = 0;

  virtual void begin_capture(StreamId stream, CaptureMode mode = CaptureMode::thread_local_) = 0;
  // Ends the capture and instantiates what was recorded.
  virtual GraphId end_capture(StreamId stream) = 0;
  virtual bool capturing(StreamId stream) const = 0;
  // Not into a capturing stream: CUDA makes no child of it.
  virtual void launch_graph(StreamId stream, GraphId graph, Site site = Site::here()) = 0;
  virtual void destroy_graph(GraphId graph) = 0;

  virtual void mark(StreamId stream, const Mark& mark) = 0;
};

}  // namespace gatherfuzz
