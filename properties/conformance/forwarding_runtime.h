// A runtime that hands every call on to another one, for runtimes that change a few of them.
#pragma once

#include "impl/runtime/runtime.h"

namespace gatherfuzz {

class ForwardingRuntime : public Runtime {
 public:
  explicit ForwardingRuntime(Runtime& inner) : inner_(inner) {}

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  BufferId allocate(const char* name, uint32_t bytes, Fill fill) override {
    return inner_.allocate(name, bytes, fill);
  }
  void release(BufferId buffer) override { inner_.release(buffer); }
  void allocate_again(BufferId buffer, Fill fill) override { inner_.allocate_again(buffer, fill); }
  StreamId create_stream(const char* name, StreamKind kind) override {
    return inner_.create_stream(name, kind);
  }
  EventId create_event() override { return inner_.create_event(); }
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    inner_.submit(stream, type, op, site);
  }
  void record(EventId event, StreamId stream, Site site) override { inner_.record(event, stream, site); }
  void wait(StreamId stream, EventId event, Site site) override { inner_.wait(stream, event, site); }
  bool query(EventId event) override { return inner_.query(event); }
  void synchronize(EventId event) override { inner_.synchronize(event); }
  void synchronize_stream(StreamId stream) override { inner_.synchronize_stream(stream); }
  HostScalar read(StreamId stream, const Operand& scalar, Site site) override {
    return inner_.read(stream, scalar, site);
  }
  void on_host_thread(int thread) override { inner_.on_host_thread(thread); }
  CaptureMode exchange_capture_mode(CaptureMode mode) override { return inner_.exchange_capture_mode(mode); }
  void begin_capture(StreamId stream, CaptureMode mode) override { inner_.begin_capture(stream, mode); }
  GraphId end_capture(StreamId stream) override { return inner_.end_capture(stream); }
  bool capturing(StreamId stream) const override { return inner_.capturing(stream); }
  void launch_graph(StreamId stream, GraphId graph, Site site) override {
    inner_.launch_graph(stream, graph, site);
  }
  void destroy_graph(GraphId graph) override { inner_.destroy_graph(graph); }
  void mark(StreamId stream, const Mark& mark) override { inner_.mark(stream, mark); }

 protected:
  Runtime& inner_;
};

}  // namespace gatherfuzz
