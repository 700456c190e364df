// Holds an op's declared footprint against what its host kernel does: which bytes change, and which bytes
// change them.
#pragma once

#include <string>
#include <vector>

#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

struct FootprintReport {
  std::size_t read_bytes = 0, write_bytes = 0, accumulated = 0, other_bytes = 0;
  std::size_t reads_that_never_matter = 0;  // declared as read, and no tried change of them changed an output
  std::size_t olds_that_never_matter = 0;   // bytes declared as updated, likewise; sums are left out, as
                                            // rounding hides small old values
  std::size_t writes_missed = 0;            // declared as written, but left as they were
  std::size_t sums_missed = 0;              // elements declared as accumulated to that never changed
  std::size_t others_written = 0;           // changed, but not declared
  bool others_read = false;                 // undeclared bytes changed an output

  bool is_true() const {
    return reads_that_never_matter + olds_that_never_matter + writes_missed + sums_missed + others_written ==
               0 &&
           !others_read;
  }
  std::string text() const {
    return std::to_string(reads_that_never_matter) + " of " + std::to_string(read_bytes) +
           " read bytes do not matter, " + std::to_string(olds_that_never_matter) +
           " updated bytes do not matter, " + std::to_string(writes_missed) + " of " +
           std::to_string(write_bytes) + " bytes were not written, " + std::to_string(sums_missed) + " of " +
           std::to_string(accumulated) + " sums did not change, " + std::to_string(others_written) + " of " +
           std::to_string(other_bytes) + " other bytes were written" +
           (others_read ? ", other bytes were read" : "");
  }
};

// Perturbs every byte of the bench's buffers. The op's inputs must hold numbers for which each of them
// matters.
FootprintReport check_footprint(KernelBench& bench, const OpType& type, const void* op);

template <class Op>
FootprintReport check_footprint(KernelBench& bench, const Op& op) {
  return check_footprint(bench, op_type<Op>(), &op);
}

}  // namespace gatherfuzz
