// OUT/failures: one file for each class and signature, CLASS-SIGNATURE.program, as small as it got, and under
// unshrunk/ as it was found, which is there before anything else is done with it.
//
// What an earlier campaign stored is never overwritten. If its program still fails alike, the failure is
// known and nothing is written; if not (it was fixed, or edited), this one goes to CLASS-SIGNATURE.2.program.
#pragma once

#include <set>
#include <string>

#include "fuzz/failure.h"
#include "fuzz/guarded_run.h"

namespace gatherfuzz {

class FailureStore {
 public:
  explicit FailureStore(std::string out) : folder_(std::move(out) + "/failures") {}

  // Whether this campaign has kept one of this class and signature.
  bool has(const Outcome& outcome) const { return kinds_.contains(name_of_kind(outcome)); }
  const std::set<std::string>& kinds() const { return kinds_; }
  void restore(const std::set<std::string>& kinds) { kinds_ = kinds; }

  // Shrinks and stores the program, or finds the one that is known. Throws InternalError if it cannot be
  // written; then the program has been printed.
  struct Kept {
    Failure failure;
    bool known = false;
  };
  Kept keep(const Program& program, RuntimeKind runtime, const Outcome& outcome, const std::string& found_by);

 private:
  static std::string name_of_kind(const Outcome& outcome);
  // Whether the program of that file fails alike; it is then the failure's.
  bool is_known(const std::string& file, RuntimeKind runtime, const Outcome& outcome, Failure& failure);

  std::string folder_;
  std::set<std::string> kinds_;  // CLASS-SIGNATURE
  Worker worker_{kMostProgramSeconds};
};

}  // namespace gatherfuzz
