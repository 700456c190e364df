// Facts about events, queries and other calls that look at a stream while it, or another, captures.
#include "properties/conformance/cuda/cuda_calls.h"
#include "properties/conformance/cuda/fact.h"
#include "properties/conformance/cuda/fact_kernels.h"

namespace gatherfuzz {
namespace {

// Long enough that the host looks while the device still spins, also on a busy machine.
constexpr int spin_microseconds = 15000;

constexpr CaptureTrial relaxed_trial = {cudaStreamCaptureModeRelaxed};

// ---- the state of a capture

struct CaptureInfo {
  cudaError_t asked = cudaSuccess;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  cudaGraph_t graph = nullptr;
  size_t dependencies = 0;
};

CaptureInfo capture_info(cudaStream_t stream) {
  CaptureInfo info;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  info.asked = cudaStreamGetCaptureInfo(stream, &info.status, &info.id, &info.graph, &nodes, &edges,
                                        &info.dependencies);
  return info;
}

std::string words(const CaptureInfo& info) {
  if (info.asked != cudaSuccess) return name(info.asked);
  if (info.status != cudaStreamCaptureStatusActive) return name(info.status);
  return "active, " + node_kinds(info.graph) + ", dependencies " + std::to_string(info.dependencies);
}

void capture_info_follows_the_stream(Observations& o) {
  Stream stream, other;
  Event forked, joined;
  o.expect("before", "none", words(capture_info(stream)));
  Graph graph = capture(o, stream, [&] {
    o.expect("begun", "active, no nodes, dependencies 0", words(capture_info(stream)));
    cudaError_t worked = launch_spin(0, stream);
    o.expect("one kernel", "active, kernel, dependencies 1", words(capture_info(stream)));
    worked = first_error({worked, fork(stream, forked, other)});
    o.expect("forked", "active, kernel, dependencies 1", words(capture_info(other)));
    o.expect("same capture", "yes", capture_info(other).id == capture_info(stream).id ? "yes" : "no");
    worked = first_error({worked, launch_spin(0, stream), launch_spin(0, other)});
    worked = first_error({worked, fork(other, joined, stream)});
    o.expect("joined", "active, kernel kernel kernel, dependencies 2", words(capture_info(stream)));
    return worked;
  });
  o.expect("after", "none", words(capture_info(stream)));
  o.expect("after, in the other stream", "none", words(capture_info(other)));
  expect_value(o, "edges", 2, edge_count(graph));
}

void capture_ids_are_not_used_twice(Observations& o) {
  Stream stream;
  unsigned long long ids[2] = {};
  for (unsigned long long& id : ids) {
    Graph graph = capture(o, stream, [&] {
      id = capture_info(stream).id;
      return cudaSuccess;
    });
  }
  o.expect("two captures of one stream", "differ", ids[0] != ids[1] ? "differ" : "are the same");
}

void dependencies_can_be_set(Observations& o) {
  Stream stream;
  expect_error(
      o, "set where nothing captures", cudaErrorIllegalState,
      cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies));
  Graph graph = capture(o, stream, [&] {
    const cudaError_t first = launch_spin(0, stream);
    const cudaError_t set =
        cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0, cudaStreamSetCaptureDependencies);
    o.expect("set to none", "active, kernel, dependencies 0", words(capture_info(stream)));
    return first_error({first, set, launch_spin(0, stream)});
  });
  o.expect("nodes", "kernel kernel", node_kinds(graph));
  expect_value(o, "edges", 0, edge_count(graph));
}

void an_invalidated_capture_stays_so_until_its_end(Observations& o) {
  Stream stream, other;
  Event event;
  DeviceInt x;
  expect_ok(o, "begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  expect_ok(o, "fork", fork(stream, event, other));
  o.expect("status before", "active", capture_status(other));
  expect_error(o, "query", cudaErrorStreamCaptureUnsupported, cudaStreamQuery(stream));
  o.expect("status of the origin", "invalidated", capture_status(stream));
  o.expect("status of the fork", "invalidated", capture_status(other));
  expect_error(o, "launch in the origin", cudaErrorStreamCaptureInvalidated, launch_add(x, 1, stream));
  expect_error(o, "launch in the fork", cudaErrorStreamCaptureInvalidated, launch_add(x, 1, other));
  expect_error(o, "record", cudaErrorStreamCaptureInvalidated, cudaEventRecord(event, other));
  cudaGraph_t graph = nullptr;
  expect_error(o, "end in the fork", cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(other, &graph));
  expect_error(o, "end", cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  o.expect("graph", "no graph", node_kinds(graph));
  o.expect("status of the origin after the end", "none", capture_status(stream));
  o.expect("status of the fork after the end", "none", capture_status(other));
  expect_ok(o, "launch in the origin after the end", launch_add(x, 1, stream));
  expect_ok(o, "launch in the fork after the end", launch_add(x, 0, other));
  expect_value(o, "only the launch after the end ran", 1, x.get());
}

// ---- queries and waits of the host

void queries_of_a_capturing_stream(Observations& o) {
  for (cudaStreamCaptureMode mode : capture_modes) {
    o.expect(name(mode) + ": cudaStreamQuery", prohibited(cudaErrorStreamCaptureUnsupported),
             during_capture({mode}, [](cudaStream_t stream) { return cudaStreamQuery(stream); }));
    o.expect(name(mode) + ": cudaStreamSynchronize", prohibited(cudaErrorStreamCaptureUnsupported),
             during_capture({mode}, [](cudaStream_t stream) { return cudaStreamSynchronize(stream); }));
  }
}

void device_synchronize_ends_every_capture(Observations& o) {
  for (bool other_thread : {false, true}) {
    for (cudaStreamCaptureMode mode : capture_modes) {
      CaptureTrial trial = {mode, cudaStreamNonBlocking, other_thread};
      o.expect(name(mode) + (other_thread ? ", from another thread" : ""),
               prohibited(cudaErrorStreamCaptureUnsupported),
               during_capture(trial, [](cudaStream_t) { return cudaDeviceSynchronize(); }));
    }
  }
}

void device_synchronize_with_two_captures(Observations& o) {
  Stream local, relaxed;
  expect_ok(o, "begin", cudaStreamBeginCapture(local, cudaStreamCaptureModeThreadLocal));
  expect_ok(o, "begin", cudaStreamBeginCapture(relaxed, cudaStreamCaptureModeRelaxed));
  expect_error(o, "synchronize", cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
  o.expect("the thread-local capture", "invalidated", capture_status(local));
  o.expect("the relaxed capture", "invalidated", capture_status(relaxed));
  cudaGraph_t graph = nullptr;
  expect_error(o, "end", cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(local, &graph));
  expect_error(o, "end", cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(relaxed, &graph));
}

void host_looks_at_a_captured_event(Observations& o) {
  Event event;
  float milliseconds = 0;
  const auto record_and = [&](auto look) {
    return during_capture(relaxed_trial, [&](cudaStream_t stream) {
      const cudaError_t recorded = cudaEventRecord(event, stream);
      return recorded == cudaSuccess ? look() : recorded;
    });
  };
  const std::string expected = prohibited(cudaErrorCapturedEvent);
  o.expect("cudaEventQuery", expected, record_and([&] { return cudaEventQuery(event); }));
  o.expect("cudaEventSynchronize", expected, record_and([&] { return cudaEventSynchronize(event); }));
  o.expect("cudaEventElapsedTime", harmless(cudaErrorCapturedEvent),
           record_and([&] { return cudaEventElapsedTime(&milliseconds, event, event); }));
  expect_error(o, "query after the capture", cudaErrorInvalidValue, cudaEventQuery(event));
  expect_error(o, "elapsed time after the capture", cudaErrorInvalidValue,
               cudaEventElapsedTime(&milliseconds, event, event));
  Stream stream;
  expect_ok(o, "record again", cudaEventRecord(event, stream));
  expect_ok(o, "synchronize then", cudaEventSynchronize(event));
  expect_ok(o, "query then", cudaEventQuery(event));
}

// ---- calls that do not concern the capturing stream

struct UnrelatedCall {
  const char* what;
  bool unsafe;  // potentially unsafe in the sense of rules 11 to 13
  std::function<cudaError_t()> call;
};

void unrelated_calls(Observations& o) {
  Stream stream;
  Event event, unrecorded;
  Buffer from(BufferKind::pinned, sizeof(int));
  DeviceInt to;
  *from.at<int>() = 7;
  expect_ok(o, "record", cudaEventRecord(event, stream));
  expect_ok(o, "synchronize", cudaStreamSynchronize(stream));
  const UnrelatedCall calls[] = {
      {"cudaEventQuery of a completed event", true, [&] { return cudaEventQuery(event); }},
      {"cudaEventQuery of an event never recorded", true, [&] { return cudaEventQuery(unrecorded); }},
      {"cudaEventSynchronize", true, [&] { return cudaEventSynchronize(event); }},
      {"cudaStreamQuery", true, [&] { return cudaStreamQuery(stream); }},
      {"cudaStreamSynchronize", true, [&] { return cudaStreamSynchronize(stream); }},
      {"cudaEventRecord", false, [&] { return cudaEventRecord(event, stream); }},
      {"cudaMemcpyAsync", false,
       [&] { return cudaMemcpyAsync(to, from.at(), sizeof(int), cudaMemcpyHostToDevice, stream); }},
      {"cudaEventCreate and cudaEventDestroy", false,
       [] {
         cudaEvent_t made = nullptr;
         const cudaError_t result = cudaEventCreate(&made);
         return made == nullptr ? result : cudaEventDestroy(made);
       }},
      {"cudaStreamCreate and cudaStreamDestroy", false,
       [] {
         cudaStream_t made = nullptr;
         const cudaError_t result = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
         return made == nullptr ? result : cudaStreamDestroy(made);
       }},
      {"cudaMemGetInfo", false,
       [] {
         size_t free_bytes = 0, all_bytes = 0;
         return cudaMemGetInfo(&free_bytes, &all_bytes);
       }},
  };
  for (const UnrelatedCall& each : calls) {
    for (bool other_thread : {false, true}) {
      for (cudaStreamCaptureMode mode : capture_modes) {
        const bool prohibits =
            other_thread ? mode == cudaStreamCaptureModeGlobal : mode != cudaStreamCaptureModeRelaxed;
        o.expect(name(mode) + (other_thread ? ", from another thread: " : ": ") + each.what,
                 each.unsafe && prohibits ? prohibited(cudaErrorStreamCaptureUnsupported) : allowed(),
                 during_capture({mode, cudaStreamNonBlocking, other_thread},
                                [&](cudaStream_t) { return each.call(); }));
      }
    }
  }
  expect_ok(o, "the stream afterwards", cudaStreamSynchronize(stream));
  expect_value(o, "the copies were not captured: one has run", 7, to.get());
}

// ---- the legacy stream

void legacy_stream_and_a_blocking_capture(Observations& o) {
  DeviceInt x;
  int value = 5;
  for (cudaStreamCaptureMode mode : {cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    const CaptureTrial trial = {mode, cudaStreamDefault};
    o.expect(name(mode) + ": cudaMemcpy", prohibited(cudaErrorStreamCaptureImplicit),
             during_capture(trial, [&](cudaStream_t) {
               return cudaMemcpy(x, &value, sizeof value, cudaMemcpyHostToDevice);
             }));
    o.expect(name(mode) + ": a launch in the legacy stream", prohibited(cudaErrorStreamCaptureImplicit),
             during_capture(trial, [&](cudaStream_t) { return launch_add(x, 1, cudaStreamLegacy); }));
    o.expect(name(mode) + ": cudaStreamIsCapturing", harmless(cudaErrorStreamCaptureImplicit),
             during_capture(trial, [](cudaStream_t) {
               cudaStreamCaptureStatus status;
               return cudaStreamIsCapturing(cudaStreamLegacy, &status);
             }));
    o.expect(name(mode) + ": cudaStreamGetCaptureInfo", harmless(cudaErrorStreamCaptureImplicit),
             during_capture(trial, [](cudaStream_t) { return capture_info(cudaStreamLegacy).asked; }));
  }
  expect_value(o, "nothing has run", 0, x.get());
}

void legacy_stream_and_a_non_blocking_capture(Observations& o) {
  DeviceInt x;
  int value = 5;
  for (cudaStreamCaptureMode mode : capture_modes) {
    // The copy waits for its own work, and is none of the calls that the mode prohibits.
    o.expect(name(mode) + ": cudaMemcpy", allowed(), during_capture({mode}, [&](cudaStream_t) {
               return cudaMemcpy(x, &value, sizeof value, cudaMemcpyHostToDevice);
             }));
    expect_value(o, name(mode) + ": the value", 5, x.get());
    o.expect(name(mode) + ": a launch in the legacy stream", allowed(),
             during_capture({mode}, [&](cudaStream_t) { return launch_add(x, 1, cudaStreamLegacy); }));
    expect_value(o, name(mode) + ": the value after the launch", 6, x.get());
    x.set(0);
  }
}

// ---- external events

void waits_across_the_boundary_of_a_capture(Observations& o) {
  Stream outside;
  Event event, unrecorded;
  expect_ok(o, "record", cudaEventRecord(event, outside));
  const auto wait = [&](cudaEvent_t on, unsigned flags) {
    return [on, flags](cudaStream_t stream) { return cudaStreamWaitEvent(stream, on, flags); };
  };
  o.expect("ordinary wait", prohibited(cudaErrorStreamCaptureIsolation),
           during_capture(relaxed_trial, wait(event, cudaEventWaitDefault)));
  Stream stream;
  Graph graph = capture(o, stream, [&] { return wait(event, cudaEventWaitExternal)(stream); });
  o.expect("external wait", "wait-event", node_kinds(graph));
  Graph on_unrecorded = capture(o, stream, [&] { return wait(unrecorded, cudaEventWaitExternal)(stream); });
  o.expect("external wait on an event never recorded", "wait-event", node_kinds(on_unrecorded));
  Exec exec(on_unrecorded);
  expect_ok(o, "its replay does not wait", exec.run(stream));
  expect_error(o, "external wait outside a capture", cudaErrorIllegalState,
               wait(event, cudaEventWaitExternal)(stream));
}

void external_record_records_at_each_replay(Observations& o) {
  Stream stream;
  Event start, event;
  Graph graph = capture(o, stream, [&] {
    return first_error({cudaEventRecordWithFlags(start, stream, cudaEventRecordExternal),
                        launch_spin(spin_microseconds, stream),
                        cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal)});
  });
  o.expect("nodes", "event-record event-record kernel", node_kinds(graph));
  expect_value(o, "edges", 2, edge_count(graph));
  Exec exec(graph);
  expect_ok(o, "before a replay the event is not recorded", cudaEventQuery(event));
  for (const char* replay : {"first replay", "second replay"}) {
    const std::string which = replay;
    expect_ok(o, which, exec.launch(stream));
    expect_error(o, which + " while it spins", cudaErrorNotReady, cudaEventQuery(event));
    expect_ok(o, which + ": wait for the event", cudaEventSynchronize(event));
    expect_ok(o, which + " done", cudaEventQuery(event));
    float milliseconds = 0;
    expect_ok(o, which + ": elapsed time", cudaEventElapsedTime(&milliseconds, start, event));
    const bool long_enough = milliseconds * 1000 >= spin_microseconds * 0.9f;
    o.expect(which + ": milliseconds", "those of the spin",
             long_enough ? "those of the spin" : std::to_string(milliseconds));
  }
  expect_error(o, "external record outside a capture", cudaErrorIllegalState,
               cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal));
}

void external_wait_waits_for_a_later_record(Observations& o) {
  Stream producer, consumer;
  Event event;
  DeviceInt x, seen;
  Graph graph = capture(o, consumer, [&] {
    return first_error(
        {cudaStreamWaitEvent(consumer, event, cudaEventWaitExternal), launch_copy(x, seen, consumer)});
  });
  o.expect("nodes", "kernel wait-event", node_kinds(graph));
  Exec exec(graph);
  expect_ok(o, "replay before any record", exec.run(consumer));
  expect_value(o, "seen before any record", 0, seen.get());
  for (int round = 1; round <= 2; ++round) {
    expect_ok(o, "produce", launch_slow_add(x, 1, spin_microseconds, producer));
    expect_ok(o, "record", cudaEventRecord(event, producer));
    expect_ok(o, "replay", exec.run(consumer));
    expect_value(o, "seen after record " + std::to_string(round), round, seen.get());
  }
}

constexpr Fact facts[] = {
    {"rule 9", "cudaStreamGetCaptureInfo follows the stream", capture_info_follows_the_stream},
    {"rule 9", "capture ids are not used twice", capture_ids_are_not_used_twice},
    {"rule 9", "the dependencies of a capturing stream can be set", dependencies_can_be_set},
    {"rule 6", "an invalidated capture stays so until its end",
     an_invalidated_capture_stays_so_until_its_end},
    {"rule 21", "queries of a capturing stream", queries_of_a_capturing_stream},
    {"rule 21", "cudaDeviceSynchronize invalidates a capture", device_synchronize_ends_every_capture},
    {"rule 21", "cudaDeviceSynchronize with two captures", device_synchronize_with_two_captures},
    {"rule 20", "the host looks at a captured event", host_looks_at_a_captured_event,
     "cudaEventElapsedTime says 907 and leaves the capture valid; after the capture all say 1"},
    {"rule 11", "calls that do not concern the capturing stream", unrelated_calls},
    {"rule 22", "the legacy stream while a blocking stream captures", legacy_stream_and_a_blocking_capture},
    {"rule 22", "the legacy stream while a non-blocking one captures",
     legacy_stream_and_a_non_blocking_capture,
     "a synchronous copy is allowed beside the capture of a non-blocking stream, in every mode"},
    {"rule 17", "waits across the boundary of a capture", waits_across_the_boundary_of_a_capture},
    {"rule 23", "an external record records at each replay", external_record_records_at_each_replay},
    {"rule 23", "an external wait waits for a later record", external_wait_waits_for_a_later_record},
};

}  // namespace

std::span<const Fact> event_facts() {
  return facts;
}

}  // namespace gatherfuzz
