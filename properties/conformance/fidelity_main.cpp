// gatherfuzz_fidelity: runs the conformance cases on the simulator and on a GPU side by side, then the facts
// that drive CUDA directly, then drawn programs. Exit: 0 all as expected, 1 something differs, 2 usage, 77
// there is no GPU.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "properties/conformance/gpu.h"
#include "properties/conformance/random_program.h"
#include "properties/conformance/simulator.h"

namespace gatherfuzz {
namespace {

constexpr const char* kUsage =
    "usage: gatherfuzz_fidelity [--programs N] [--seed N] [--only TEXT]\n"
    "  --programs N  drawn programs to compare (10000)\n"
    "  --seed N      of the first one (1)\n"
    "  --only TEXT   the cases and facts whose rule or name holds the text, and no programs\n";

struct Options {
  int programs = 10'000;
  uint64_t seed = 1;
  std::string only;
};

class Report {
 public:
  void line(const std::string& rule, const std::string& name, const std::string& verdict,
            const std::vector<std::string>& details, const std::string& correction = "") {
    std::printf("%-8s %-76s %s\n", rule.c_str(), name.c_str(), verdict.c_str());
    if (!correction.empty()) std::printf("           corrected: %s\n", correction.c_str());
    for (const std::string& detail : details) std::printf("           %s\n", detail.c_str());
    std::fflush(stdout);
    if (!details.empty()) ++wrong_;
  }
  int wrong() const { return wrong_; }

 private:
  int wrong_ = 0;
};

bool wanted(const Options& options, const std::string& rule, const std::string& name) {
  return (rule + " " + name).find(options.only) != std::string::npos;
}

int run_cases(const Options& options, Report& report) {
  const MakeMachine simulated = simulator(MemoryKind::host), real = gpu();
  int cases = 0;
  for (const Case& c : all_cases()) {
    if (!wanted(options, c.rule, c.name)) continue;
    ++cases;
    std::vector<std::string> details;
    for (const std::string& d : run_case(c, simulated).differences) details.push_back("simulator: " + d);
    std::string verdict = "undefined on a GPU, reported by the simulator";
    if (c.kind == Case::Kind::same || c.kind == Case::Kind::deadlock) {
      verdict = c.kind == Case::Kind::same ? "same" : "deadlock, reported by both";
      for (const std::string& d : run_case(c, real).differences) details.push_back("GPU: " + d);
    }
    report.line(c.rule, c.name, details.empty() ? verdict : "DIFFERS", details, c.correction);
  }
  return cases;
}

Observations observe(const Fact& fact, int falsified) {
  Observations observations(falsified);
  try {
    fact.body(observations);
  } catch (const std::exception& error) {
    observations.expect("the fact", "runs to its end", error.what());
  }
  return observations;
}

int run_facts(const Options& options, Report& report) {
  int facts = 0;
  for (const Fact& fact : all_facts()) {
    if (!wanted(options, fact.rule, fact.name)) continue;
    ++facts;
    const Observations observations = observe(fact, -1);
    std::vector<std::string> details = observations.differences();
    // Each observation must be able to fail.
    for (int i = 0; details.empty() && i < observations.count(); ++i)
      if (observe(fact, i).differences().empty())
        details.push_back("observation " + std::to_string(i) + " cannot fail");
    report.line(fact.rule, fact.name, details.empty() ? "seen on the GPU" : "DIFFERS", details,
                fact.correction);
  }
  return facts;
}

void run_programs(const Options& options, Report& report) {
  constexpr int kGpuTurns = 3, kMostReported = 40;
  const MakeMachine simulated = simulator(MemoryKind::host), real = gpu();
  std::map<std::string, std::string> shrunk;  // a program, and how it disagrees
  int ordered = 0, disagreeing = 0;
  for (int i = 0; i < options.programs; ++i) {
    const RandomProgram program = draw_program(options.seed + static_cast<uint64_t>(i));
    ordered += predict(program, simulated).values ? 1 : 0;
    const auto disagrees = [&](const RandomProgram& p) {
      return !disagreement(p, simulated, real, kGpuTurns).empty();
    };
    if (disagreement(program, simulated, real, 1 + i % kGpuTurns).empty()) continue;
    ++disagreeing;
    if (shrunk.size() >= kMostReported || !disagrees(program)) continue;
    const RandomProgram small = shrink(program, disagrees);
    shrunk[to_string(small)] = disagreement(small, simulated, real, kGpuTurns);
  }
  std::printf(
      "programs: %d drawn from seed %llu, %d of them with an order that fixes every value, %d disagree\n",
      options.programs, static_cast<unsigned long long>(options.seed), ordered, disagreeing);
  for (const auto& [text, how] : shrunk) report.line("program", how, "DIFFERS", {"\n" + text});
}

int run(const Options& options) {
  if (const std::string why = why_no_gpu(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  std::printf("%s\n", describe_gpu().c_str());
  Report report;
  const int facts = run_facts(options, report);
  const int cases = run_cases(options, report);
  if (options.only.empty()) run_programs(options, report);
  std::printf("conformance: %d cases, %d facts, %d differ\n", cases, facts, report.wrong());
  return report.wrong() == 0 && cases + facts > 0 ? 0 : 1;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    char* end = nullptr;
    const unsigned long long number = std::strtoull(value.c_str(), &end, 10);
    const bool is_number = !value.empty() && *end == 0 && value[0] != '-';
    if (name == "--only") {
      options.only = value;
    } else if (name == "--programs" && is_number && number <= 100'000'000) {
      options.programs = static_cast<int>(number);
    } else if (name == "--seed" && is_number) {
      options.seed = number;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace gatherfuzz

int main(int argc, char** argv) {
  // Ranks that share a GPU wait for each other in kernels, so each stream needs a connection of its own.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  gatherfuzz::Options options;
  if (!gatherfuzz::parse(argc, argv, options)) {
    std::fputs(gatherfuzz::kUsage, stderr);
    return 2;
  }
  return gatherfuzz::run(options);
}
