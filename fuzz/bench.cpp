#include "fuzz/bench.h"

#include <algorithm>
#include <chrono>
#include <map>
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

// Prints figures, each beside one of those before it where that says something.
class Figures {
 public:
  explicit Figures(bool json) : json_(json) {}

  void print(const std::string& name, double value, const std::string& unit, const std::string& peer = "") {
    values_[name] = value;
    const double ratio = peer.empty() ? 0.0 : value / values_.at(peer);
    if (!json_) {
      const std::string beside = peer.empty() ? "" : ", " + short_text(ratio) + " of " + peer;
      return print_result(name + "  " + fixed_text(value, 1) + " " + unit + beside);
    }
    nlohmann::ordered_json line;
    line["name"] = name;
    line["value"] = value;
    line["unit"] = unit;
    line["peer"] = peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(peer);
    line["ratio"] = peer.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(ratio);
    print_result(line.dump());
  }

 private:
  bool json_;
  std::map<std::string, double> values_;
};

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
  const auto measured = [&](const RunOptions& run) {
    const Totals totals = run_all(programs, run, options.seconds);
    unexpected += totals.unexpected;
    return totals;
  };
  const auto programs_per_second = [](const Totals& totals) { return totals.per_second(totals.programs); };
  Figures figures(options.json);
  const Totals of_fine = measured(fine);
  figures.print("symbolic_ops_per_second", of_fine.per_second(of_fine.ops), "ops/s");
  figures.print("symbolic_fine_programs_per_second", programs_per_second(of_fine), "programs/s");
  const Totals of_coarse = measured(symbolic);
  figures.print("symbolic_programs_per_second", programs_per_second(of_coarse), "programs/s",
                "symbolic_fine_programs_per_second");
  figures.print("host_programs_per_second", programs_per_second(measured(host)), "programs/s",
                "symbolic_programs_per_second");
  figures.print("ops_per_program",
                static_cast<double>(of_coarse.ops) / static_cast<double>(of_coarse.programs), "ops");
  figures.print("symbolic_coarse_ops_per_second", of_coarse.per_second(of_coarse.ops), "ops/s",
                "symbolic_ops_per_second");
  figures.print("symbolic_programs_with_twins_per_second", programs_per_second(measured(twins)), "programs/s",
                "symbolic_programs_per_second");
  figures.print("host_programs_with_twins_per_second", programs_per_second(measured(host_twins)),
                "programs/s", "host_programs_per_second");
  figures.print("mutants_per_second", mutants_per_second(programs, options.seconds), "programs/s");
  if (unexpected == 0) return kExitAsExpected;
  print_note("bench: " + with_commas(unexpected) + " runs did not end as expected; see gatherfuzz check " +
             options.corpus);
  return kExitUnexpected;
}

}  // namespace gatherfuzz
