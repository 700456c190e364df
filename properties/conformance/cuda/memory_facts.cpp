// Facts about memory and capture: what may be allocated, memory that a graph owns, and when host memory is
// read.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "properties/conformance/cuda/cuda_calls.h"
#include "properties/conformance/cuda/fact.h"
#include "properties/conformance/cuda/fact_kernels.h"

namespace gatherfuzz {
namespace {

constexpr int spin_microseconds = 15000;

// ---- host functions, callbacks and attachments

void increment(void* counter) {
  ++*static_cast<int*>(counter);
}
void increment_callback(cudaStream_t, cudaError_t, void* counter) {
  increment(counter);
}

void callbacks_cannot_be_captured(Observations& o) {
  int calls = 0;
  for (cudaStreamCaptureMode mode : capture_modes) {
    o.expect(name(mode), prohibited(cudaErrorStreamCaptureUnsupported),
             during_capture({mode}, [&](cudaStream_t stream) {
               return cudaStreamAddCallback(stream, increment_callback, &calls, 0);
             }));
  }
  expect_value(o, "calls", 0, calls);
  Stream stream;
  expect_ok(o, "outside a capture", cudaStreamAddCallback(stream, increment_callback, &calls, 0));
  expect_ok(o, "synchronize", cudaStreamSynchronize(stream));
  expect_value(o, "calls outside a capture", 1, calls);
}

void attachments_cannot_be_captured(Observations& o) {
  Buffer managed(BufferKind::managed, sizeof(int));
  for (cudaStreamCaptureMode mode : capture_modes) {
    o.expect(name(mode), prohibited(cudaErrorStreamCaptureUnsupported),
             during_capture({mode}, [&](cudaStream_t stream) {
               return cudaStreamAttachMemAsync(stream, managed.at(), 0, cudaMemAttachHost);
             }));
  }
  Stream stream;
  expect_ok(o, "outside a capture", cudaStreamAttachMemAsync(stream, managed.at(), 0, cudaMemAttachHost));
  expect_ok(o, "synchronize", cudaStreamSynchronize(stream));
}

void host_functions_run_at_each_replay(Observations& o) {
  Stream stream;
  int calls = 0;
  Graph graph = capture(o, stream, [&] { return cudaLaunchHostFunc(stream, increment, &calls); });
  expect_value(o, "calls after the capture", 0, calls);
  o.expect("nodes", "host", node_kinds(graph));
  Exec exec(graph);
  expect_value(o, "calls after instantiation", 0, calls);
  for (int replay = 1; replay <= 3; ++replay) {
    expect_ok(o, "replay", exec.run(stream));
    expect_value(o, "calls after replay " + std::to_string(replay), replay, calls);
  }
}

// ---- allocations during a capture

bool is_prohibited(const CaptureTrial& trial) {
  if (trial.other_thread) return trial.mode == cudaStreamCaptureModeGlobal;
  return trial.mode != cudaStreamCaptureModeRelaxed;
}

// One observation for each mode, from the thread that captures and from another one. `call` gets fresh memory
// from `make`; `discard` frees what is there afterwards: what the call made, or what it failed to free.
void allocation_trials(Observations& o, const std::string& what, const std::function<void*()>& make,
                       const std::function<cudaError_t(void**)>& call,
                       const std::function<void(void*)>& discard) {
  for (bool other_thread : {false, true}) {
    for (cudaStreamCaptureMode mode : capture_modes) {
      const CaptureTrial trial = {mode, cudaStreamNonBlocking, other_thread};
      void* memory = make();
      o.expect(name(mode) + (other_thread ? ", from another thread: " : ": ") + what,
               is_prohibited(trial) ? prohibited(cudaErrorStreamCaptureUnsupported) : allowed(),
               during_capture(trial, [&](cudaStream_t) { return call(&memory); }));
      if (memory != nullptr) discard(memory);
      cudaGetLastError();
    }
  }
}

void* device_memory() {
  void* memory = nullptr;
  return cudaMalloc(&memory, 4096) == cudaSuccess ? memory : nullptr;
}

void* pinned_memory() {
  void* memory = nullptr;
  return cudaMallocHost(&memory, 4096) == cudaSuccess ? memory : nullptr;
}

void* no_memory() {
  return nullptr;
}

cudaError_t free_and_forget(void** memory, cudaError_t (*free)(void*)) {
  const cudaError_t freed = free(*memory);
  if (freed == cudaSuccess) *memory = nullptr;
  return freed;
}

void device_allocations(Observations& o) {
  const auto discard = [](void* memory) { cudaFree(memory); };
  allocation_trials(
      o, "cudaMalloc", no_memory, [](void** memory) { return cudaMalloc(memory, 4096); }, discard);
  allocation_trials(
      o, "cudaFree", device_memory, [](void** memory) { return free_and_forget(memory, cudaFree); }, discard);
}

void free_of_nothing(Observations& o) {
  for (cudaStreamCaptureMode mode : capture_modes) {
    const bool relaxed = mode == cudaStreamCaptureModeRelaxed;
    o.expect(name(mode) + ": cudaFree of a null pointer",
             relaxed ? allowed() : prohibited(cudaErrorStreamCaptureUnsupported),
             during_capture({mode}, [](cudaStream_t) { return cudaFree(nullptr); }));
  }
}

void pinned_allocations(Observations& o) {
  const auto discard = [](void* memory) { cudaFreeHost(memory); };
  allocation_trials(
      o, "cudaMallocHost", no_memory, [](void** memory) { return cudaMallocHost(memory, 4096); }, discard);
  allocation_trials(
      o, "cudaFreeHost", pinned_memory, [](void** memory) { return free_and_forget(memory, cudaFreeHost); },
      discard);
}

void registrations(Observations& o) {
  std::vector<char> room(3 * 4096);
  // A whole page, so that what it shares with other memory does not matter.
  char* page = room.data() + (4096 - reinterpret_cast<std::uintptr_t>(room.data()) % 4096) % 4096;
  const auto add = [page](void** memory) {
    const cudaError_t registered = cudaHostRegister(page, 4096, cudaHostRegisterDefault);
    if (registered == cudaSuccess) *memory = page;
    return registered;
  };
  const auto make = [add] {
    void* memory = nullptr;
    add(&memory);
    return memory;
  };
  const auto discard = [](void* memory) { cudaHostUnregister(memory); };
  allocation_trials(o, "cudaHostRegister", no_memory, add, discard);
  allocation_trials(
      o, "cudaHostUnregister", make,
      [](void** memory) { return free_and_forget(memory, cudaHostUnregister); }, discard);
}

// A thread's own mode, unlike that of a capture, is relaxed for a few calls only.
void a_relaxed_thread_may_allocate(Observations& o) {
  void* memory = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed, restored = mode;
  o.expect("in a global capture", allowed(), during_capture({cudaStreamCaptureModeGlobal}, [&](cudaStream_t) {
             cudaThreadExchangeStreamCaptureMode(&mode);
             const cudaError_t made = cudaMalloc(&memory, 4096);
             restored = mode;
             cudaThreadExchangeStreamCaptureMode(&restored);
             return made;
           }));
  o.expect("the mode before", "global", name(mode));
  o.expect("the mode meanwhile", "relaxed", name(restored));
  cudaFree(memory);
}

// ---- memory of a graph

cudaError_t allocate(int** memory, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(memory), sizeof(int), stream);
}

void stream_ordered_allocations_become_nodes(Observations& o) {
  Stream stream;
  DeviceInt seen;
  int* memory = nullptr;
  Graph graph = capture(o, stream, [&] {
    return first_error({allocate(&memory, stream), cudaMemsetAsync(memory, 0, sizeof(int), stream),
                        launch_add(memory, 3, stream), launch_copy(memory, seen, stream),
                        cudaFreeAsync(memory, stream)});
  });
  o.expect("nodes", "kernel kernel mem-alloc mem-free memset", node_kinds(graph));
  Exec exec(graph);
  for (int replay = 1; replay <= 2; ++replay) {
    expect_ok(o, "replay", exec.run(stream));
    expect_value(o, "value", 3, seen.get());
    seen.set(0);
  }
  Exec second(graph);
  expect_error(o, "a second instance", cudaErrorNotSupported, second.made());
  cudaGraph_t clone = nullptr;
  expect_error(o, "a clone", cudaErrorNotSupported, cudaGraphClone(&clone, graph));
  Graph cloned(clone);
}

void only_memory_of_a_graph_is_freed_in_it(Observations& o) {
  Stream outside;
  int* memory = nullptr;
  expect_ok(o, "allocate outside", allocate(&memory, outside));
  expect_ok(o, "synchronize", cudaStreamSynchronize(outside));
  for (cudaStreamCaptureMode mode : capture_modes) {
    o.expect(name(mode) + ": free in a capture", harmless(cudaErrorInvalidValue),
             during_capture({mode}, [&](cudaStream_t stream) { return cudaFreeAsync(memory, stream); }));
  }
  expect_ok(o, "free outside", cudaFreeAsync(memory, outside));
  expect_ok(o, "synchronize", cudaStreamSynchronize(outside));
}

// A graph that allocates an int, sets it to `value` and leaves it allocated.
Graph capture_allocation(Observations& o, cudaStream_t stream, int** memory, int value) {
  return capture(o, stream, [&] {
    return first_error({allocate(memory, stream), cudaMemsetAsync(*memory, 0, sizeof(int), stream),
                        launch_add(*memory, value, stream)});
  });
}

void the_address_is_fixed(Observations& o) {
  Stream stream;
  DeviceInt seen;
  int* memory = nullptr;
  Graph graph = capture_allocation(o, stream, &memory, 4);
  cudaMemAllocNodeParams parameters = {};
  expect_ok(o, "parameters",
            cudaGraphMemAllocNodeGetParams(node_of_kind(graph, cudaGraphNodeTypeMemAlloc), &parameters));
  o.expect("address of the node", "the captured one",
           parameters.dptr == memory ? "the captured one" : "another one");
  Exec exec(graph);
  for (int replay = 1; replay <= 3; ++replay) {
    // Without a replay there is no memory at the address, so nothing may use it.
    const cudaError_t launched = exec.launch(stream);
    expect_ok(o, "replay", launched);
    if (launched == cudaSuccess) {
      launch_add(memory, replay, stream);
      launch_copy(memory, seen, stream);
      cudaFreeAsync(memory, stream);
    }
    expect_ok(o, "use and free outside the graph",
              first_error({cudaStreamSynchronize(stream), cudaGetLastError()}));
    expect_value(o, "value at replay " + std::to_string(replay), 4 + replay, seen.get());
  }
}

void memory_left_at_a_replay(Observations& o) {
  Stream stream;
  int* memory = nullptr;
  Graph graph = capture_allocation(o, stream, &memory, 1);
  Exec exec(graph);
  expect_ok(o, "replay", exec.run(stream));
  expect_error(o, "replay with memory not freed", cudaErrorInvalidValue, exec.run(stream));
  expect_ok(o, "free", cudaFreeAsync(memory, stream));
  expect_error(o, "free twice", cudaErrorInvalidValue, cudaFreeAsync(memory, stream));
  expect_ok(o, "replay with memory freed", exec.run(stream));
  expect_ok(o, "free again", cudaFreeAsync(memory, stream));
  expect_ok(o, "synchronize", cudaStreamSynchronize(stream));
}

void memory_freed_by_a_relaunch(Observations& o) {
  Stream stream;
  DeviceInt seen;
  int* memory = nullptr;
  Graph graph = capture_allocation(o, stream, &memory, 9);
  Exec exec(graph, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  const cudaError_t first = exec.run(stream);
  expect_ok(o, "replay", first);
  expect_ok(o, "replay with memory not freed", exec.run(stream));
  // Without a replay there is no memory at the address.
  if (first == cudaSuccess) launch_copy(memory, seen, stream);
  expect_value(o, "value", 9, seen.get());
  expect_ok(o, "free", cudaFreeAsync(memory, stream));
  expect_ok(o, "synchronize", cudaStreamSynchronize(stream));
}

// ---- when host memory is read

void host_sources_are_read_at_replay(Observations& o) {
  Stream stream;
  DeviceInt x;
  std::vector<int> pageable(1, 1);
  Buffer buffer(BufferKind::pinned, sizeof(int));
  int* pinned = buffer.at<int>();
  for (int* source : {pageable.data(), pinned}) {
    const std::string kind = source == pinned ? "pinned" : "pageable";
    *source = 1;
    Graph graph = capture(
        o, stream, [&] { return cudaMemcpyAsync(x, source, sizeof(int), cudaMemcpyHostToDevice, stream); });
    o.expect(kind + ": nodes", "memcpy", node_kinds(graph));
    *source = 2;
    Exec exec(graph);
    for (int value : {3, 4}) {
      *source = value;
      expect_ok(o, kind + ": replay", exec.run(stream));
      expect_value(o, kind + ": arrived", value, x.get());
    }
  }
}

// What arrives of `source`, all 1, if it is set to 2 as soon as an enqueued copy's call has returned.
std::string arrived(char* source, size_t bytes) {
  Stream stream;
  Buffer target(BufferKind::device, bytes);
  std::fill(source, source + bytes, 1);
  const cudaError_t spun = launch_spin(spin_microseconds, stream);
  const cudaError_t copied = cudaMemcpyAsync(target.at(), source, bytes, cudaMemcpyHostToDevice, stream);
  std::fill(source, source + bytes, 2);
  const cudaError_t error = first_error({spun, copied, cudaStreamSynchronize(stream)});
  if (error != cudaSuccess) return name(error);
  std::vector<char> found(bytes);
  cudaMemcpy(found.data(), target.at(), bytes, cudaMemcpyDeviceToHost);
  const auto [least, most] = std::minmax_element(found.begin(), found.end());
  if (*least != *most) return "old and new";
  return *least == 1 ? "old" : "new";
}

void when_a_copy_has_left_its_source(Observations& o) {
  for (size_t bytes : {4, 1 << 10, 64 << 10, 128 << 10, 8 << 20}) {
    std::vector<char> pageable(bytes);
    Buffer pinned(BufferKind::pinned, bytes);
    const std::string size = ", " + std::to_string(bytes) + " bytes";
    o.expect("pageable" + size, "old", arrived(pageable.data(), bytes));
    o.expect("pinned" + size, "new", arrived(pinned.at<char>(), bytes));
  }
}

constexpr Fact facts[] = {
    {"rule 25", "callbacks cannot be captured", callbacks_cannot_be_captured},
    {"rule 25", "attachments cannot be captured", attachments_cannot_be_captured},
    {"rule 25", "host functions run at each replay", host_functions_run_at_each_replay},
    {"rule 27", "device allocations during a capture", device_allocations},
    {"rule 27", "freeing nothing is a free", free_of_nothing, "prohibited as any other"},
    {"rule 28", "pinned allocations during a capture", pinned_allocations,
     "allowed in relaxed mode; the rule said in none"},
    {"rule 28", "registrations during a capture", registrations},
    {"rule 14", "a thread in relaxed mode may allocate", a_relaxed_thread_may_allocate},
    {"rule 29", "stream-ordered allocations become nodes", stream_ordered_allocations_become_nodes},
    {"rule 29", "only memory of a graph is freed in it", only_memory_of_a_graph_is_freed_in_it},
    {"rule 30", "the address of a graph's memory is fixed", the_address_is_fixed},
    {"rule 32", "memory left at a replay prevents the next", memory_left_at_a_replay},
    {"rule 32", "memory left at a replay is freed by the next on request", memory_freed_by_a_relaunch},
    {"rule 35", "host sources are read at replay", host_sources_are_read_at_replay},
    {"rule 35", "when a copy outside a capture has left its source", when_a_copy_has_left_its_source},
};

}  // namespace

std::span<const Fact> memory_facts() {
  return facts;
}

}  // namespace gatherfuzz
