// What one conformance case or fact expected and what it found, in words that name calls, errors and values
// as CUDA does.
#pragma once

#include <string>
#include <vector>

namespace gatherfuzz {

class Observations {
 public:
  // `falsified`: the number of one observation, from 0, whose finding is replaced by a wrong one, so that a
  // test sees every observation matter; -1: none.
  explicit Observations(int falsified = -1) : falsified_(falsified) {}

  // E.g. expect("end of the capture", "cudaErrorStreamCaptureUnjoined", cudaGetErrorName(found)).
  void expect(const std::string& what, const std::string& expected, std::string found) {
    if (count_++ == falsified_) found = "a falsified finding";
    if (found != expected) differences_.push_back(what + ": expected " + expected + ", found " + found);
  }

  int count() const { return count_; }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  int falsified_;
  int count_ = 0;
  std::vector<std::string> differences_;
};

}  // namespace gatherfuzz
