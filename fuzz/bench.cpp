#include "fuzz/bench.h"

#include <nlohmann/json.hpp>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"
#include "properties/run.h"

namespace gatherfuzz {

namespace {

std::vector<Program> load(const std::string& folder) {
  std::string problem;
  std::vector<Program> programs;
  for (const std::string& file : programs_below(folder, problem)) {
    const std::optional<std::string> text = read_file(file, kMaxProgramBytes, problem);
    if (!text) throw UsageError(file + ": " + problem);
    ParseResult parsed = parse_program(*text);
    if (!parsed.ok())
      throw UsageError(file + ":" + std::to_string(parsed.errors.front().line) + ": " +
                       parsed.errors.front().message);
    programs.push_back(std::move(*parsed.program));
  }
  if (!problem.empty()) throw UsageError("--corpus " + folder + ": " + problem);
  if (programs.empty())
    throw UsageError("--corpus " + folder + ": expected *.program files below it, found none");
  return programs;
}

struct Totals {
  uint64_t programs = 0;
  uint64_t unexpected = 0;
  uint64_t ops = 0;
  double seconds = 0.0;

  double per_second(uint64_t count) const { return static_cast<double>(count) / seconds; }
};

// Whole passes over the programs, at least one.
Totals run_all(const std::vector<Program>& programs, RuntimeKind runtime, double seconds) {
  RunOptions options;
  options.runtime = runtime;
  Totals totals;
  while (totals.seconds < seconds || totals.programs == 0) {
    for (const Program& program : programs) {
      stop_if_interrupted();
      Outcome outcome = run_program(program, options);
      totals.ops += outcome.ops;
      totals.seconds += outcome.seconds;
      ++totals.programs;
      if (!as_expected(program, outcome, runtime)) ++totals.unexpected;
    }
    if (totals.seconds == 0.0) break;  // every one was refused before it ran
  }
  return totals;
}

void print_figure(bool json, const char* name, double value, const char* unit) {
  if (!json) return print_result(std::string(name) + "  " + fixed_text(value, 1) + " " + unit);
  nlohmann::ordered_json line;
  line["name"] = name;
  line["value"] = value;
  line["unit"] = unit;
  line["peer"] = nullptr;
  line["ratio"] = nullptr;
  print_result(line.dump());
}

}  // namespace

int bench(const BenchOptions& options) {
  const std::vector<Program> programs = load(options.corpus);
  const Totals symbolic = run_all(programs, RuntimeKind::symbolic, options.seconds);
  const Totals host = run_all(programs, RuntimeKind::host, options.seconds);
  print_figure(options.json, "symbolic_ops_per_second", symbolic.per_second(symbolic.ops), "ops/s");
  print_figure(options.json, "symbolic_programs_per_second", symbolic.per_second(symbolic.programs),
               "programs/s");
  print_figure(options.json, "host_programs_per_second", host.per_second(host.programs), "programs/s");
  print_figure(options.json, "ops_per_program",
               static_cast<double>(symbolic.ops) / static_cast<double>(symbolic.programs), "ops");
  if (symbolic.unexpected + host.unexpected == 0) return kExitAsExpected;
  print_note("bench: " + with_commas(symbolic.unexpected + host.unexpected) +
             " runs did not end as expected; see gatherfuzz check " + options.corpus);
  return kExitUnexpected;
}

}  // namespace gatherfuzz
