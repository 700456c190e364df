// Runtimes that are wrong in one way each, as their names say.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "impl/runtime/collective.h"
#include "impl/runtime/integer_ops.h"
#include "properties/conformance/forwarding_runtime.h"

namespace gatherfuzz {

using Forward = ForwardingRuntime;

// Knows its streams, as most of the wrong ones must.
class Wrong : public Forward {
 public:
  using Forward::Forward;
  StreamId create_stream(const char* name, StreamKind kind) override {
    streams_.push_back(Forward::create_stream(name, kind));
    return streams_.back();
  }

 protected:
  bool is_capturing(StreamId stream) const { return stream != 0 && capturing(stream); }
  // A stream that captures, or 0.
  StreamId capturing_stream() const {
    for (const StreamId s : streams_)
      if (capturing(s)) return s;
    return 0;
  }

  std::vector<StreamId> streams_;
};

// No call ever throws the error: it returns as if all were well.
template <Error kError>
class NeverSays : public Forward {
 public:
  using Forward::Forward;
  BufferId allocate(const char* name, uint32_t bytes, Fill fill) override {
    return quiet([&] { return Forward::allocate(name, bytes, fill); });
  }
  void release(BufferId b) override {
    quiet([&] { Forward::release(b); });
  }
  void submit(StreamId s, const OpType& type, const void* op, Site site) override {
    quiet([&] { Forward::submit(s, type, op, site); });
  }
  void record(EventId e, StreamId s, Site site) override {
    quiet([&] { Forward::record(e, s, site); });
  }
  void wait(StreamId s, EventId e, Site site) override {
    quiet([&] { Forward::wait(s, e, site); });
  }
  bool query(EventId e) override {
    return quiet([&] { return Forward::query(e); });
  }
  void synchronize(EventId e) override {
    quiet([&] { Forward::synchronize(e); });
  }
  void synchronize_stream(StreamId s) override {
    quiet([&] { Forward::synchronize_stream(s); });
  }
  void begin_capture(StreamId s, CaptureMode mode) override {
    quiet([&] { Forward::begin_capture(s, mode); });
  }
  GraphId end_capture(StreamId s) override {
    return quiet([&] { return Forward::end_capture(s); });
  }
  bool capturing(StreamId s) const override {
    return quiet([&] { return Forward::capturing(s); });
  }
  void launch_graph(StreamId s, GraphId g, Site site) override {
    quiet([&] { Forward::launch_graph(s, g, site); });
  }
  void destroy_graph(GraphId g) override {
    quiet([&] { Forward::destroy_graph(g); });
  }

 private:
  template <class Call>
  static auto quiet(Call&& call) -> decltype(call()) {
    try {
      return call();
    } catch (const RuntimeError& error) {
      if (error.error() != kError) throw;
    }
    return decltype(call())();
  }
};

struct RelaxedCapturesBelongToTheirThread : Wrong {
  using Wrong::Wrong;
  void on_host_thread(int thread) override { Forward::on_host_thread(thread_ = thread); }
  void begin_capture(StreamId stream, CaptureMode mode) override {
    Forward::begin_capture(stream, mode);
    began_ = thread_;
  }
  GraphId end_capture(StreamId stream) override {
    if (began_ != thread_) throw RuntimeError(Error::stream_capture_wrong_thread, "wrong on purpose");
    return Forward::end_capture(stream);
  }
  int thread_ = 0, began_ = 0;
};

struct WaitsInCapturesAreForgotten : Wrong {
  using Wrong::Wrong;
  void wait(StreamId stream, EventId event, Site site) override {
    if (capturing_stream() == 0) Forward::wait(stream, event, site);
  }
};

struct EveryForkMustJoin : Wrong {
  using Wrong::Wrong;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    Forward::submit(stream, type, op, site);
    works_.insert(stream);
  }
  GraphId end_capture(StreamId stream) override {
    for (const StreamId s : streams_)
      if (s != stream && capturing(s) && !works_.contains(s))
        throw RuntimeError(Error::stream_capture_unjoined, "wrong on purpose");
    return Forward::end_capture(stream);
  }
  std::set<StreamId> works_;
};

struct OneErrorInvalidatesEveryCapture : Wrong {
  using Wrong::Wrong;
  void synchronize_stream(StreamId stream) override {
    try {
      Forward::synchronize_stream(stream);
    } catch (const RuntimeError&) {
      for (const StreamId s : streams_) {
        if (!capturing(s)) continue;
        EXPECT_THROW(Forward::synchronize_stream(s), RuntimeError);
      }
      throw;
    }
  }
};

struct InvalidatedStreamsStayUnusable : Wrong {
  using Wrong::Wrong;
  GraphId end_capture(StreamId stream) override {
    try {
      return Forward::end_capture(stream);
    } catch (const RuntimeError&) {
      unusable_.insert(stream);
      throw;
    }
  }
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    if (unusable_.contains(stream)) throw RuntimeError(Error::stream_capture_invalidated, "wrong on purpose");
    Forward::submit(stream, type, op, site);
  }
  std::set<StreamId> unusable_;
};

struct CapturedOpsAlsoExecute : Wrong {
  explicit CapturedOpsAlsoExecute(Runtime& inner)
      : Wrong(inner), shadow_(inner.create_stream("shadow", StreamKind::non_blocking)) {}
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    Forward::submit(stream, type, op, site);
    if (is_capturing(stream)) Forward::submit(shadow_, type, op, site);
  }
  StreamId shadow_;
};

struct EveryStreamIsCaptured : Wrong {
  using Wrong::Wrong;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    const StreamId capture = capturing_stream();
    Forward::submit(capture != 0 && !is_capturing(stream) ? capture : stream, type, op, site);
  }
};

struct EveryCaptureProhibitsAllocation : Wrong {
  using Wrong::Wrong;
  BufferId allocate(const char* name, uint32_t bytes, Fill fill) override {
    if (capturing_stream() != 0) throw RuntimeError(Error::stream_capture_unsupported, "wrong on purpose");
    return Forward::allocate(name, bytes, fill);
  }
};

struct ModesAreForgotten : Wrong {
  using Wrong::Wrong;
  CaptureMode exchange_capture_mode(CaptureMode) override { return CaptureMode::global; }
};

struct AWaitMeansTheLatestWork : Wrong {
  using Wrong::Wrong;
  void record(EventId event, StreamId stream, Site site) override {
    Forward::record(event, stream, site);
    where_[event] = stream;
  }
  void wait(StreamId stream, EventId event, Site site) override {
    if (where_.contains(event)) Forward::record(event, where_[event], site);
    Forward::wait(stream, event, site);
  }
  std::map<EventId, StreamId> where_;
};

struct TheFirstRecordCounts : Wrong {
  using Wrong::Wrong;
  void record(EventId event, StreamId stream, Site site) override {
    if (recorded_.insert(event).second) Forward::record(event, stream, site);
  }
  std::set<EventId> recorded_;
};

struct UnrecordedEventsAreIncomplete : Wrong {
  using Wrong::Wrong;
  void record(EventId event, StreamId stream, Site site) override {
    Forward::record(event, stream, site);
    recorded_.insert(event);
  }
  bool query(EventId event) override { return recorded_.contains(event) && Forward::query(event); }
  void wait(StreamId stream, EventId event, Site site) override {
    if (is_capturing(stream) && !recorded_.contains(event))
      throw RuntimeError(Error::stream_capture_isolation, "wrong on purpose");
    Forward::wait(stream, event, site);
  }
  std::set<EventId> recorded_;
};

// Repeats the ops of a graph of one stream where a second stream launches it.
struct LaunchesAreOrderedByStreamsAlone : Wrong {
  using Wrong::Wrong;
  struct Op {
    const OpType* type;
    std::vector<std::byte> bytes;
  };
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    Forward::submit(stream, type, op, site);
    const auto* bytes = static_cast<const std::byte*>(op);
    if (is_capturing(stream)) open_.push_back({&type, {bytes, bytes + type.size}});
  }
  GraphId end_capture(StreamId stream) override {
    const std::vector<Op> ops = std::move(open_);
    open_.clear();
    const GraphId graph = Forward::end_capture(stream);
    ops_[graph] = ops;
    return graph;
  }
  void launch_graph(StreamId stream, GraphId graph, Site site) override {
    const bool first = first_.emplace(graph, stream).first->second == stream;
    if (first || is_capturing(stream)) {
      Forward::launch_graph(stream, graph, site);
      return;
    }
    for (const Op& op : ops_[graph]) Forward::submit(stream, *op.type, op.bytes.data(), site);
  }
  std::vector<Op> open_;
  std::map<GraphId, std::vector<Op>> ops_;
  std::map<GraphId, StreamId> first_;
};

struct ReplaysBeginAtOnce : Wrong {
  using Wrong::Wrong;
  void launch_graph(StreamId stream, GraphId graph, Site site) override {
    const StreamId elsewhere = Forward::create_stream("elsewhere", StreamKind::non_blocking);
    Forward::launch_graph(is_capturing(stream) ? stream : elsewhere, graph, site);
  }
};

struct AGraphRunsOnce : Wrong {
  using Wrong::Wrong;
  void launch_graph(StreamId stream, GraphId graph, Site site) override {
    if (launched_.insert(graph).second) Forward::launch_graph(stream, graph, site);
  }
  std::set<GraphId> launched_;
};

struct DestructionDropsTheLaunch : Wrong {
  using Wrong::Wrong;
  void launch_graph(StreamId stream, GraphId graph, Site) override {
    launch();
    pending_ = {stream, graph};
  }
  void synchronize_stream(StreamId stream) override {
    launch();
    Forward::synchronize_stream(stream);
  }
  void destroy_graph(GraphId graph) override {
    pending_ = {};
    Forward::destroy_graph(graph);
  }
  void launch() {
    if (pending_.second != 0) Forward::launch_graph(pending_.first, pending_.second, Site{});
    pending_ = {};
  }
  std::pair<StreamId, GraphId> pending_;
};

struct EmptyGraphsAreRefused : Wrong {
  using Wrong::Wrong;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    Forward::submit(stream, type, op, site);
    if (is_capturing(stream)) empty_ = false;
  }
  GraphId end_capture(StreamId stream) override {
    const GraphId graph = Forward::end_capture(stream);
    if (empty_) refused_.insert(graph);
    empty_ = true;
    return graph;
  }
  void launch_graph(StreamId stream, GraphId graph, Site site) override {
    if (refused_.contains(graph)) throw RuntimeError(Error::invalid_value, "wrong on purpose");
    Forward::launch_graph(stream, graph, site);
  }
  bool empty_ = true;
  std::set<GraphId> refused_;
};

struct TheLegacyStreamIsAnyStream : Wrong {
  using Wrong::Wrong;
  StreamId create_stream(const char* name, StreamKind) override {
    return Wrong::create_stream(name, StreamKind::non_blocking);
  }
};

struct EveryStreamIsBlocking : Wrong {
  using Wrong::Wrong;
  StreamId create_stream(const char* name, StreamKind) override {
    return Wrong::create_stream(name, StreamKind::blocking);
  }
};

struct TheHostDoesNotWait : Wrong {
  using Wrong::Wrong;
  void synchronize(EventId) override {}
};

struct CollectivesLeaveZeros : Wrong {
  using Wrong::Wrong;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    Forward::submit(stream, type, op, site);
    if (!type.collective()) return;
    const Operand whole = collective_ranges(type, op).whole;
    launch(stream, SetTo{make_view<float>(whole.buffer, whole.begin, whole.count()), 0});
  }
};

struct EmptyCollectivesAreRefused : Wrong {
  using Wrong::Wrong;
  void submit(StreamId stream, const OpType& type, const void* op, Site site) override {
    if (type.collective() && describe_collective(type, op).count == 0)
      throw RuntimeError(Error::nccl_invalid_usage, "wrong on purpose");
    Forward::submit(stream, type, op, site);
  }
};

}  // namespace gatherfuzz
