#include "fuzz/failure_store.h"

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/program_file.h"
#include "fuzz/report.h"

namespace gatherfuzz {

std::string FailureStore::name_of_kind(const Outcome& outcome) {
  return std::string(name_of(*outcome.failure)) + "-" + signature_text(outcome);
}

bool FailureStore::is_known(const std::string& file, RuntimeKind runtime, const Outcome& outcome,
                            Failure& failure) {
  try {
    const Program stored = without_comments(read_program_file(file).program);
    if (!alike(worker_.run(stored, runtime), outcome)) return false;
    failure = examine(worker_, stored, runtime, outcome);
    return true;
  } catch (const UsageError&) {
    return false;  // somebody has broken it; it stays theirs
  }
}

FailureStore::Kept FailureStore::keep(const Program& program, RuntimeKind runtime, const Outcome& outcome,
                                      const std::string& found_by) {
  Kept kept;
  std::string name = name_of_kind(outcome);
  for (int copy = 2; !kept.known && exists(folder_ + "/" + name + ".program"); ++copy) {
    kept.known = is_known(folder_ + "/" + name + ".program", runtime, outcome, kept.failure);
    if (!kept.known) name = name_of_kind(outcome) + "." + std::to_string(copy);
  }
  const std::string file = folder_ + "/" + name + ".program";
  const std::string unshrunk = folder_ + "/unshrunk/" + name + ".program";
  const std::string original = print_program(with_its_twin(program, outcome));
  try {
    if (!kept.known) {
      write_file(unshrunk, original);  // before anything else can go wrong
      kept.failure = investigate(worker_, program, runtime, outcome);
    }
    kept.failure.file = file;
    kept.failure.found_by = found_by;
    if (!kept.known) {
      write_file(unshrunk, stored_text(kept.failure.original, kept.failure));
      write_file(file, stored_text(kept.failure.program, kept.failure));
    }
  } catch (const InternalError&) {
    print_note("FAILURE " + verdict_text(outcome) + ", which could not be stored:\n" + original);
    throw;
  }
  kinds_.insert(name_of_kind(outcome));
  return kept;
}

}  // namespace gatherfuzz
