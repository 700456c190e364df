// What a campaign runs next: half of the programs are drawn, half are changed from programs that reached host
// states which none before had reached. Those are kept, and written to OUT/corpus. The engine libfuzzer
// chooses for itself, and only begins with the same programs.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "fuzz/campaign.h"

namespace gatherfuzz {

// A program that was kept, as it can be drawn again.
struct KeptProgram {
  uint64_t number = 0;
  std::size_t built_on = 0;  // how many programs were kept when it was drawn
};

// Gives the program these flags, and others what they need then. Whether it can have them, and is not refused
// with them. Throws UsageError for what is no flag.
bool give_flags(Program& program, const std::vector<FlagSetting>& set);

class CampaignInputs {
 public:
  // Reads options.corpus and gives its programs the flags that are set; files with a `fault` line are left
  // out, unreadable ones and those that cannot have the flags are named. Throws
  // UsageError for a folder that cannot be read, and for `set` flags that no accepted flag set has.
  explicit CampaignInputs(const CampaignOptions& options);

  // The program of this number, from 1: first those of the folder, then what is drawn, which depends on
  // options.seed and on the first `built_on` of the kept programs.
  Program next(uint64_t number, std::size_t built_on) const;
  // A program that did not fail went through these states. Throws InternalError if it cannot be written.
  void learn(const KeptProgram& kept, const Program& program, const std::vector<uint32_t>& states);
  // What learn() was told by a campaign with the same options.
  void restore(const std::vector<KeptProgram>& kept, const std::vector<uint32_t>& states);

  uint64_t seeds() const { return seeds_; }
  uint64_t states() const { return states_.size(); }
  std::size_t kept() const { return seeds_ + kept_.size(); }
  const std::vector<KeptProgram>& kept_programs() const { return kept_; }
  std::vector<uint32_t> all_states() const;  // sorted
  // Of the programs of the folder.
  uint64_t seeds_hash() const;

 private:
  void read_corpus();
  Program candidate(uint64_t seed, std::size_t built_on) const;

  const CampaignOptions& options_;
  const bool draws_;  // and libFuzzer does not
  const bool keeps_;  // what reaches a new state
  std::vector<Program> corpus_;
  std::size_t seeds_ = 0;          // programs of the folder, the first ones of corpus_
  std::vector<KeptProgram> kept_;  // the others of corpus_, which has them only to draw from
  std::unordered_set<uint32_t> states_;
};

}  // namespace gatherfuzz
