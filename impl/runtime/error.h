// Errors of the runtime contract, with the numbers and names that CUDA and NCCL give them.
#pragma once

#include <stdexcept>
#include <string>

namespace gatherfuzz {

enum class Error {
  invalid_value = 1,
  invalid_resource_handle = 400,
  illegal_state = 401,
  illegal_address = 700,
  not_supported = 801,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_merge = 902,
  stream_capture_unmatched = 903,
  stream_capture_unjoined = 904,
  stream_capture_isolation = 905,
  stream_capture_implicit = 906,
  captured_event = 907,
  stream_capture_wrong_thread = 908,
  nccl_invalid_usage = 10005,
};

// E.g. "cudaErrorStreamCaptureUnjoined".
const char* error_name(Error error);

// Thrown by every call of the contract that fails; nothing was enqueued then.
class RuntimeError : public std::runtime_error {
 public:
  RuntimeError(Error error, const std::string& what)
      : std::runtime_error(std::string(error_name(error)) + ": " + what), error_(error) {}
  Error error() const { return error_; }

 private:
  Error error_;
};

}  // namespace gatherfuzz
