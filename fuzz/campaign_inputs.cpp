#include "fuzz/campaign_inputs.h"

#include <algorithm>

#include "fuzz/corpus_rules.h"
#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/program_file.h"
#include "impl/runtime/symbolic/term.h"
#include "properties/generator.h"
#include "properties/mutate.h"

namespace gatherfuzz {

namespace {

constexpr int kTries = 1000;  // draws until one has the flags that are set

bool has_flags(const Flags& flags, const std::vector<FlagSetting>& set) {
  Flags with = flags;
  apply_settings(with, set);
  return with == flags;
}

}  // namespace

bool give_flags(Program& program, const std::vector<FlagSetting>& set) {
  apply_settings(program.flags, set);
  repair_flags(program.flags);
  return has_flags(program.flags, set) && !refusal_before_run(program);
}

CampaignInputs::CampaignInputs(const CampaignOptions& options)
    : options_(options),
      draws_(options.engine == Engine::builtin),
      keeps_(!draws_ || !options.without.states) {
  Flags flags;
  apply_settings(flags, options.set);
  repair_flags(flags);
  if (!has_flags(flags, options.set)) {
    Flags asked;
    apply_settings(asked, options.set);
    const std::vector<FlagConflict> conflicts = validate(asked);
    throw UsageError("--set: no accepted flag set is like this" +
                     (conflicts.empty() ? std::string() : ": " + conflicts.front().text()));
  }
  if (!options.corpus.empty()) read_corpus();
}

void CampaignInputs::read_corpus() {
  const ProgramFolder folder = read_program_folder(options_.corpus);
  for (const std::string& problem : folder.unreadable) print_note("fuzz: left out: " + problem);
  for (const ProgramFile& file : folder.files) {
    if (!file.program.faults.empty() || refusal_before_run(file.program)) continue;
    Program program = without_comments(file.program);
    program.expect.reset();
    program.twin.reset();
    if (give_flags(program, options_.set)) {
      corpus_.push_back(std::move(program));
    } else {
      print_note("fuzz: left out: " + file.path + ": it cannot have the flags of --set");
    }
  }
  seeds_ = corpus_.size();
}

Program CampaignInputs::candidate(uint64_t seed, std::size_t built_on) const {
  RandomChoices choices(seed);
  if (built_on == 0 || flip(choices, 50, "draw")) return generate_program(choices);
  const Program& one = corpus_[choices.below(built_on, "one")];
  if (!flip(choices, 20, "splice")) return mutate(one, choices);
  return splice(one, corpus_[choices.below(built_on, "other")], choices);
}

Program CampaignInputs::next(uint64_t number, std::size_t built_on) const {
  if (number <= seeds_) return corpus_[number - 1];
  const uint64_t seed = mix(options_.seed.number, number);
  Program program = candidate(seed, built_on);
  if (options_.set.empty()) return program;
  for (int i = 1; i < kTries; ++i) {
    if (give_flags(program, options_.set)) return program;
    program = candidate(mix(seed, static_cast<uint64_t>(i)), built_on);
  }
  throw InternalError("--set: no drawn program could be given these flags");
}

void CampaignInputs::learn(const KeptProgram& kept, const Program& program,
                           const std::vector<uint32_t>& states) {
  bool fresh = false;
  for (const uint32_t state : states) fresh = states_.insert(state).second || fresh;
  if (!fresh || !keeps_) return;
  if (draws_) {
    corpus_.push_back(program);
    corpus_.back().faults.clear();
  }
  kept_.push_back(kept);
  if (!program.faults.empty()) return;  // runs with a fault never write to a corpus
  write_file(options_.out + "/corpus/" + hash_text(program) + ".program", print_program(program), Sync::no);
}

void CampaignInputs::restore(const std::vector<KeptProgram>& kept, const std::vector<uint32_t>& states) {
  for (const KeptProgram& one : draws_ ? kept : std::vector<KeptProgram>()) {
    if (one.number == 0 || one.built_on > corpus_.size())
      throw UsageError("it is of another version: a program is built on what comes later");
    corpus_.push_back(next(one.number, one.built_on));
  }
  kept_ = kept;
  states_.insert(states.begin(), states.end());
}

std::vector<uint32_t> CampaignInputs::all_states() const {
  std::vector<uint32_t> states(states_.begin(), states_.end());
  std::sort(states.begin(), states.end());
  return states;
}

uint64_t CampaignInputs::seeds_hash() const {
  uint64_t hash = seeds_;
  for (std::size_t i = 0; i < seeds_; ++i) {
    for (const char c : print_program(corpus_[i])) hash = mix(hash, static_cast<unsigned char>(c));
  }
  return hash;
}

}  // namespace gatherfuzz
