// Facts about libraries inside a capture: what their first use does, and collectives of a single rank.
//
// A first use is one only in the first run of a fact in a process.
#include <cublas_v2.h>
#include <nccl.h>

#include <bit>
#include <vector>

#include "properties/conformance/cuda/cuda_calls.h"
#include "properties/conformance/cuda/fact.h"
#include "properties/conformance/cuda/fact_kernels.h"

namespace gatherfuzz {
namespace {

// Both leave no error of the calls that the library made.
std::string status_name(cublasStatus_t status) {
  cudaGetLastError();
  return cublasGetStatusName(status);
}

std::string status_name(ncclResult_t result) {
  cudaGetLastError();
  switch (result) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    default:
      return "ncclResult_t " + std::to_string(result);
  }
}

// A library's call as one that during_capture and capture understand; its own result goes to `found`.
template <typename Result>
cudaError_t note(std::string* found, Result result) {
  *found = status_name(result);
  return cudaSuccess;
}

std::string invalidated() {
  return prohibited(cudaSuccess);  // by a call of the library, which reports the error in its own way
}

// ---- first uses

void first_launch_of_a_kernel(Observations& o) {
  for (int i = 0; i < 3; ++i) {
    Stream stream;
    DeviceInt x;
    Graph graph = capture(
        o, stream, [&] { return launch_unused_before(i, x, stream); }, capture_modes[i]);
    o.expect(name(capture_modes[i]) + ": nodes", "kernel", node_kinds(graph));
    Exec exec(graph);
    expect_ok(o, name(capture_modes[i]) + ": replay", exec.run(stream));
    expect_value(o, name(capture_modes[i]) + ": value", 1, x.get());
  }
}

void cublas_handle_made_in_a_capture(Observations& o) {
  for (cudaStreamCaptureMode mode : capture_modes) {
    const bool relaxed = mode == cudaStreamCaptureModeRelaxed;
    cublasHandle_t handle = nullptr;
    std::string found;
    const std::string outcome =
        during_capture({mode}, [&](cudaStream_t) { return note(&found, cublasCreate(&handle)); });
    // It allocates.
    o.expect(name(mode) + ": cublasCreate",
             relaxed ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_INITIALIZED", found);
    o.expect(name(mode) + ": the capture", relaxed ? allowed() : invalidated(), outcome);
    if (found == "CUBLAS_STATUS_SUCCESS") cublasDestroy(handle);
    cudaGetLastError();
  }
}

constexpr int matrix_size = 64;

// The product of two square matrices of ones, captured as the first use of a handle.
void first_product(Observations& o, cudaStreamCaptureMode mode, bool own_workspace) {
  const std::string which = name(mode) + (own_workspace ? ", own workspace: " : ", default workspace: ");
  constexpr size_t elements = matrix_size * matrix_size, workspace_bytes = 32 << 20;
  const std::vector<float> ones(elements, 1.0f);
  Buffer a(BufferKind::device, elements * sizeof(float)), c(BufferKind::device, elements * sizeof(float));
  Buffer workspace(BufferKind::device, own_workspace ? workspace_bytes : 1);
  expect_ok(o, which + "set",
            cudaMemcpy(a.at(), ones.data(), elements * sizeof(float), cudaMemcpyHostToDevice));
  expect_ok(o, which + "synchronize", cudaDeviceSynchronize());
  Stream stream;
  cublasHandle_t handle = nullptr;
  o.expect(which + "cublasCreate", "CUBLAS_STATUS_SUCCESS", status_name(cublasCreate(&handle)));
  // The stream first: setting it gives the default workspace back.
  o.expect(which + "cublasSetStream", "CUBLAS_STATUS_SUCCESS", status_name(cublasSetStream(handle, stream)));
  if (own_workspace) {
    o.expect(which + "cublasSetWorkspace", "CUBLAS_STATUS_SUCCESS",
             status_name(cublasSetWorkspace(handle, workspace.at(), workspace_bytes)));
  }
  float alpha = 1, beta = 0;
  std::string found;
  constexpr int n = matrix_size;
  Graph graph = capture(
      o, stream,
      [&] {
        return note(&found, cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &alpha, a.at<float>(), n,
                                        a.at<float>(), n, &beta, c.at<float>(), n));
      },
      mode);
  o.expect(which + "cublasSgemm", "CUBLAS_STATUS_SUCCESS", found);
  o.expect(which + "nodes", "kernel", node_kinds(graph));
  alpha = 5;  // read at the capture, as a kernel's parameter
  Exec exec(graph);
  expect_ok(o, which + "replay", exec.run(stream));
  std::vector<float> product(elements);
  expect_ok(o, which + "get",
            cudaMemcpy(product.data(), c.at(), elements * sizeof(float), cudaMemcpyDeviceToHost));
  expect_value(o, which + "first element", n, static_cast<int>(product.front()));
  expect_value(o, which + "last element", n, static_cast<int>(product.back()));
  if (handle != nullptr) cublasDestroy(handle);
  cudaGetLastError();
}

void first_products_with_the_default_workspace(Observations& o) {
  for (cudaStreamCaptureMode mode : capture_modes) first_product(o, mode, false);
}

void first_products_with_a_workspace_of_their_own(Observations& o) {
  for (cudaStreamCaptureMode mode : capture_modes) first_product(o, mode, true);
}

// ---- communicators

ncclResult_t make_communicator(ncclComm_t* made) {
  ncclUniqueId id;
  const ncclResult_t result = ncclGetUniqueId(&id);
  return result == ncclSuccess ? ncclCommInitRank(made, 1, id, 0) : result;
}

class Communicator {
 public:
  explicit Communicator(Observations& o) {
    o.expect("ncclCommInitRank", "ncclSuccess", status_name(make_communicator(&communicator_)));
  }
  ~Communicator() {
    if (communicator_ != nullptr) ncclCommDestroy(communicator_);
    cudaGetLastError();
  }
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  operator ncclComm_t() const { return communicator_; }

 private:
  ncclComm_t communicator_ = nullptr;
};

void communicator_made_in_a_capture(Observations& o) {
  for (cudaStreamCaptureMode mode : capture_modes) {
    ncclComm_t communicator = nullptr;
    std::string found;
    const bool relaxed = mode == cudaStreamCaptureModeRelaxed;
    o.expect(
        name(mode) + ": the capture", relaxed ? allowed() : invalidated_silently(),
        during_capture({mode}, [&](cudaStream_t) { return note(&found, make_communicator(&communicator)); }));
    o.expect(name(mode) + ": ncclCommInitRank", relaxed ? "ncclSuccess" : "ncclUnhandledCudaError", found);
    if (found == "ncclSuccess") ncclCommDestroy(communicator);
    cudaGetLastError();
  }
}

void two_ranks_on_one_device(Observations& o) {
  int device = -1;
  expect_ok(o, "device", cudaGetDevice(&device));
  ncclComm_t communicators[2] = {};
  const int devices[2] = {device, device};
  o.expect("ncclCommInitAll", "ncclInvalidUsage", status_name(ncclCommInitAll(communicators, 2, devices)));
}

void no_communicator(Observations& o) {
  DeviceInt x;
  std::string found;
  o.expect("the capture", allowed(), during_capture({cudaStreamCaptureModeGlobal}, [&](cudaStream_t stream) {
             return note(&found, ncclAllReduce(x, x, 1, ncclInt32, ncclSum, nullptr, stream));
           }));
  o.expect("ncclAllReduce", "ncclInvalidArgument", found);
}

// ---- collectives of one rank

enum class Collective { all_gather, reduce_scatter, all_reduce };

constexpr Collective collectives[] = {Collective::all_gather, Collective::reduce_scatter,
                                      Collective::all_reduce};

std::string name(Collective collective) {
  if (collective == Collective::all_gather) return "ncclAllGather";
  return collective == Collective::reduce_scatter ? "ncclReduceScatter" : "ncclAllReduce";
}

// With one rank all of them give the rank's own values.
struct OneRankCall {
  Collective collective = Collective::all_reduce;
  ncclDataType_t type = ncclInt32;
  ncclRedOp_t operation = ncclSum;
  size_t count = 1;
};

ncclResult_t enqueue(const OneRankCall& call, const int* from, int* to, ncclComm_t communicator,
                     cudaStream_t stream) {
  switch (call.collective) {
    case Collective::all_gather:
      return ncclAllGather(from, to, call.count, call.type, communicator, stream);
    case Collective::reduce_scatter:
      return ncclReduceScatter(from, to, call.count, call.type, call.operation, communicator, stream);
    default:
      return ncclAllReduce(from, to, call.count, call.type, call.operation, communicator, stream);
  }
}

// The nodes that a call is captured as, and the value of the target, 7 at first, after a replay.
void expect_captured(Observations& o, const std::string& what, const std::string& nodes, int value,
                     const std::function<ncclResult_t(cudaStream_t)>& call, DeviceInt& target) {
  Stream stream;
  std::string found;
  Graph graph = capture(o, stream, [&] { return note(&found, call(stream)); });
  o.expect(what, "ncclSuccess", found);
  o.expect(what + ": nodes", nodes, node_kinds(graph));
  Exec exec(graph);
  expect_ok(o, what + ": replay", exec.run(stream));
  expect_value(o, what + ": value", value, target.get());
}

void one_rank_in_place(Observations& o) {
  Communicator communicator(o);
  DeviceInt x;
  x.set(7);
  for (Collective collective : collectives) {
    expect_captured(
        o, name(collective), "no nodes", 7,
        [&](cudaStream_t stream) { return enqueue({collective}, x, x, communicator, stream); }, x);
    Stream stream;
    o.expect(name(collective) + " outside a capture", "ncclSuccess",
             status_name(enqueue({collective}, x, x, communicator, stream)));
    expect_value(o, name(collective) + " outside a capture: value", 7, x.get());
  }
}

void one_rank_out_of_place(Observations& o) {
  Communicator communicator(o);
  for (Collective collective : collectives) {
    DeviceInt from, to;
    from.set(3);
    to.set(7);
    expect_captured(
        o, name(collective), "memcpy", 3,
        [&](cudaStream_t stream) { return enqueue({collective}, from, to, communicator, stream); }, to);
    Stream stream;
    from.set(4);
    o.expect(name(collective) + " outside a capture", "ncclSuccess",
             status_name(enqueue({collective}, from, to, communicator, stream)));
    expect_value(o, name(collective) + " outside a capture: value", 4, to.get());
  }
}

// An average of floats multiplies first, so it needs a kernel even where nothing changes; one of integers
// divides at the end, which a single rank never reaches.
void one_rank_averages(Observations& o) {
  Communicator communicator(o);
  DeviceInt x;
  for (Collective collective : {Collective::reduce_scatter, Collective::all_reduce}) {
    const int one_and_a_half = std::bit_cast<int>(1.5f);
    x.set(one_and_a_half);
    expect_captured(
        o, name(collective) + " of floats", "kernel", one_and_a_half,
        [&](cudaStream_t stream) {
          return enqueue({collective, ncclFloat32, ncclAvg}, x, x, communicator, stream);
        },
        x);
    x.set(7);
    expect_captured(
        o, name(collective) + " of integers", "no nodes", 7,
        [&](cudaStream_t stream) {
          return enqueue({collective, ncclInt32, ncclAvg}, x, x, communicator, stream);
        },
        x);
  }
}

void one_rank_scaled_sum(Observations& o) {
  Communicator communicator(o);
  DeviceInt x;
  x.set(7);
  int factor = 3;
  ncclRedOp_t scaled = ncclSum;
  o.expect("ncclRedOpCreatePreMulSum", "ncclSuccess",
           status_name(
               ncclRedOpCreatePreMulSum(&scaled, &factor, ncclInt32, ncclScalarHostImmediate, communicator)));
  expect_captured(
      o, "scaled sum", "kernel", 21,
      [&](cudaStream_t stream) {
        return enqueue({Collective::all_reduce, ncclInt32, scaled}, x, x, communicator, stream);
      },
      x);
  if (scaled != ncclSum) ncclRedOpDestroy(scaled, communicator);
}

void count_zero(Observations& o) {
  Communicator communicator(o);
  DeviceInt from, to;
  from.set(3);
  to.set(7);
  for (Collective collective : collectives) {
    const OneRankCall call = {collective, ncclInt32, ncclSum, 0};
    expect_captured(
        o, name(collective), "no nodes", 7,
        [&](cudaStream_t stream) { return enqueue(call, from, to, communicator, stream); }, to);
    Stream stream;
    o.expect(name(collective) + " outside a capture", "ncclSuccess",
             status_name(enqueue(call, from, to, communicator, stream)));
    expect_value(o, name(collective) + " outside a capture: value", 7, to.get());
  }
}

// A group holds back the collectives of several ranks until its end, those of one rank not at all.
void one_rank_in_a_group(Observations& o) {
  Communicator communicator(o);
  DeviceInt from, to;
  from.set(3);
  std::string before_the_end;
  expect_captured(
      o, "group", "memcpy", 3,
      [&](cudaStream_t stream) {
        ncclResult_t result = ncclGroupStart();
        if (result == ncclSuccess) result = enqueue({}, from, to, communicator, stream);
        cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
        cudaGraph_t graph = nullptr;
        cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph);
        before_the_end = node_kinds(graph);
        const ncclResult_t ended = ncclGroupEnd();
        return result == ncclSuccess ? ended : result;
      },
      to);
  o.expect("nodes before the end of the group", "memcpy", before_the_end);
}

void collective_in_an_invalidated_capture(Observations& o) {
  Communicator communicator(o);
  DeviceInt from, to;
  from.set(3);
  std::string found;
  o.expect("the capture", invalidated(),
           during_capture({cudaStreamCaptureModeThreadLocal}, [&](cudaStream_t stream) {
             cudaStreamQuery(stream);  // invalidates
             return note(&found, enqueue({}, from, to, communicator, stream));
           }));
  o.expect("ncclAllReduce", "ncclUnhandledCudaError", found);
  Stream stream;
  o.expect("ncclAllReduce afterwards", "ncclSuccess",
           status_name(enqueue({}, from, to, communicator, stream)));
  expect_value(o, "value afterwards", 3, to.get());
}

constexpr Fact facts[] = {
    {"rule 7", "a kernel's first launch is in a capture", first_launch_of_a_kernel},
    {"rule 27", "a cuBLAS handle made in a capture", cublas_handle_made_in_a_capture},
    {"rule 29", "first products in a capture, default workspace", first_products_with_the_default_workspace},
    {"rule 29", "first products in a capture, own workspace", first_products_with_a_workspace_of_their_own},
    {"rule 14", "a communicator made in a capture", communicator_made_in_a_capture,
     "NCCL relaxes only some of what it calls: outside relaxed mode it fails and breaks the capture"},
    {"rule 50", "two ranks on one device are refused", two_ranks_on_one_device},
    {"rule 59", "a null communicator is refused and harmless", no_communicator},
    {"rule 55", "collectives of one rank in place", one_rank_in_place},
    {"rule 57", "collectives of one rank out of place", one_rank_out_of_place},
    {"rule 57", "averages of one rank", one_rank_averages},
    {"rule 57", "a scaled sum of one rank", one_rank_scaled_sum},
    {"rule 57", "a collective of one rank in a group", one_rank_in_a_group},
    {"rule 56", "collectives of nothing", count_zero},
    {"rule 6", "a collective in an invalidated capture", collective_in_an_invalidated_capture},
};

}  // namespace

std::span<const Fact> library_facts() {
  return facts;
}

}  // namespace gatherfuzz
