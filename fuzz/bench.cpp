#include "fuzz/bench.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/interrupt.h"
#include "fuzz/output.h"
#include "properties/mutate.h"
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
  uint64_t programs = 0;  // of one pass
  uint64_t unexpected = 0;
  uint64_t ops = 0;      // of one pass
  double seconds = 0.0;  // of the median pass: other work on the machine lengthens some passes

  double per_second(uint64_t count) const { return static_cast<double>(count) / seconds; }
};

// Whole passes over the programs until the time is up, at least one.
Totals run_all(const std::vector<Program>& programs, const RunOptions& options, double seconds) {
  Totals totals;
  totals.programs = programs.size();
  std::vector<double> passes;
  for (double spent = 0.0; spent < seconds || passes.empty(); spent += passes.back()) {
    passes.push_back(0.0);
    totals.ops = totals.unexpected = 0;
    for (const Program& program : programs) {
      stop_if_interrupted();
      Outcome outcome = run_program(program, options);
      totals.ops += outcome.ops;
      passes.back() += outcome.seconds;
      if (!as_expected(program, outcome, options.runtime)) ++totals.unexpected;
    }
    if (passes.back() == 0.0) break;  // every one was refused before it ran
  }
  const auto median = passes.begin() + static_cast<std::ptrdiff_t>(passes.size() / 2);
  std::nth_element(passes.begin(), median, passes.end());
  totals.seconds = *median;
  return totals;
}

// Mutants of these programs, one core.
double mutants_per_second(const std::vector<Program>& programs, double seconds) {
  RandomChoices choices(1);
  uint64_t made = 0;
  const auto start = std::chrono::steady_clock::now();
  double spent = 0.0;
  while (spent < seconds || made == 0) {
    stop_if_interrupted();
    for (const Program& program : programs) mutate(program, choices);
    made += programs.size();
    spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return static_cast<double>(made) / spent;
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

// Terms or numbers and all oracles; programs that replay a graph are then also run beside their eager twin.
int bench(const BenchOptions& options) {
  const std::vector<Program> programs = load(options.corpus);
  RunOptions symbolic, host;
  symbolic.twin = host.twin = false;
  host.runtime = RuntimeKind::host;
  RunOptions fine = symbolic, twins = symbolic, host_twins = host;
  fine.coarse = false;
  twins.twin = host_twins.twin = true;

  uint64_t unexpected = 0;
  auto figure = [&](const char* name, const RunOptions& run, bool ops) {
    const Totals totals = run_all(programs, run, options.seconds);
    unexpected += totals.unexpected;
    print_figure(options.json, name, totals.per_second(ops ? totals.ops : totals.programs),
                 ops ? "ops/s" : "programs/s");
    return totals;
  };
  figure("symbolic_ops_per_second", fine, true);
  const Totals coarse = figure("symbolic_programs_per_second", symbolic, false);
  figure("host_programs_per_second", host, false);
  print_figure(options.json, "ops_per_program",
               static_cast<double>(coarse.ops) / static_cast<double>(coarse.programs), "ops");
  figure("symbolic_coarse_ops_per_second", symbolic, true);
  figure("symbolic_programs_with_twins_per_second", twins, false);
  figure("host_programs_with_twins_per_second", host_twins, false);
  print_figure(options.json, "mutants_per_second", mutants_per_second(programs, options.seconds),
               "programs/s");
  if (unexpected == 0) return kExitAsExpected;
  print_note("bench: " + with_commas(unexpected) + " runs did not end as expected; see gatherfuzz check " +
             options.corpus);
  return kExitUnexpected;
}

}  // namespace gatherfuzz
