#include "fuzz/campaign_inputs.h"

#include <cstdio>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "impl/runtime/symbolic/term.h"
#include "properties/generator.h"
#include "properties/mutate.h"

namespace gatherfuzz {

namespace {

constexpr int kTries = 1000;  // draws until one has the flags that are set

std::string corpus_path(const std::string& out, const Program& program) {
  char name[32];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(program_hash(program)));
  return out + "/corpus/" + name + ".program";
}

}  // namespace

CampaignInputs::CampaignInputs(const CampaignOptions& options) : options_(options) {
  Flags flags;
  apply_settings(flags, options.set);
  repair_flags(flags);
  if (!has_settings(flags)) {
    Flags asked;
    apply_settings(asked, options.set);
    const std::vector<FlagConflict> conflicts = validate(asked);
    throw UsageError("--set: no accepted flag set is like this" +
                     (conflicts.empty() ? std::string() : ": " + conflicts.front().text()));
  }
  if (!options.corpus.empty()) read_corpus();
}

void CampaignInputs::read_corpus() {
  std::string problem;
  for (const std::string& file : programs_below(options_.corpus, problem)) {
    std::string unreadable;
    const std::optional<std::string> text = read_file(file, kMaxProgramBytes, unreadable);
    const ParseResult parsed = parse_program(text.value_or(""));
    if (!text || !parsed.ok()) {
      print_note("fuzz: left out: " + file + ": " + (text ? parsed.errors.front().message : unreadable));
    } else if (parsed.program->faults.empty() && !refusal_before_run(*parsed.program)) {
      Program program = without_comments(*parsed.program);
      program.expect.reset();
      program.twin.reset();
      corpus_.push_back(std::move(program));
    }
  }
  if (!problem.empty()) throw UsageError("--corpus " + options_.corpus + ": " + problem);
  seeds_ = corpus_.size();
}

bool CampaignInputs::has_settings(const Flags& flags) const {
  Flags with = flags;
  apply_settings(with, options_.set);
  return with == flags;
}

Program CampaignInputs::candidate(uint64_t seed) const {
  RandomChoices choices(seed);
  if (corpus_.empty() || flip(choices, 50, "draw")) return generate_program(choices);
  const Program& one = corpus_[choices.below(corpus_.size(), "one")];
  if (!flip(choices, 20, "splice")) return mutate(one, choices);
  return splice(one, corpus_[choices.below(corpus_.size(), "other")], choices);
}

Program CampaignInputs::next(uint64_t seed) {
  if (next_seed_ < seeds_) return corpus_[next_seed_++];
  Program program = candidate(seed);
  if (options_.set.empty()) return program;
  for (int i = 1; i < kTries; ++i) {
    apply_settings(program.flags, options_.set);
    repair_flags(program.flags);
    if (has_settings(program.flags) && !refusal_before_run(program)) return program;
    program = candidate(mix(seed, static_cast<uint64_t>(i)));
  }
  throw InternalError("--set: no drawn program could be given these flags");
}

void CampaignInputs::learn(const Program& program, const std::vector<uint32_t>& states) {
  bool fresh = false;
  for (const uint32_t state : states) fresh = states_.insert(state).second || fresh;
  if (!fresh) return;
  corpus_.push_back(program);
  corpus_.back().faults.clear();
  if (!program.faults.empty()) return;  // runs with a fault never write to a corpus
  write_file(corpus_path(options_.out, program), print_program(program), Sync::no);
}

}  // namespace gatherfuzz
