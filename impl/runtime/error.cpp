#include "impl/runtime/error.h"

namespace gatherfuzz {

const char* error_name(Error error) {
  switch (error) {
    case Error::invalid_value:
      return "cudaErrorInvalidValue";
    case Error::invalid_resource_handle:
      return "cudaErrorInvalidResourceHandle";
    case Error::illegal_state:
      return "cudaErrorIllegalState";
    case Error::illegal_address:
      return "cudaErrorIllegalAddress";
    case Error::not_supported:
      return "cudaErrorNotSupported";
    case Error::stream_capture_unsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case Error::stream_capture_invalidated:
      return "cudaErrorStreamCaptureInvalidated";
    case Error::stream_capture_merge:
      return "cudaErrorStreamCaptureMerge";
    case Error::stream_capture_unmatched:
      return "cudaErrorStreamCaptureUnmatched";
    case Error::stream_capture_unjoined:
      return "cudaErrorStreamCaptureUnjoined";
    case Error::stream_capture_isolation:
      return "cudaErrorStreamCaptureIsolation";
    case Error::stream_capture_implicit:
      return "cudaErrorStreamCaptureImplicit";
    case Error::captured_event:
      return "cudaErrorCapturedEvent";
    case Error::stream_capture_wrong_thread:
      return "cudaErrorStreamCaptureWrongThread";
    case Error::nccl_invalid_usage:
      return "ncclInvalidUsage";
  }
  return "unknown error";
}

}  // namespace gatherfuzz
