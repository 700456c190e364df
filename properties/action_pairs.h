// Which action may directly follow which: what campaigns measure themselves against.
#pragma once

#include <set>
#include <utility>

#include "properties/program.h"

namespace gatherfuzz {

// (previous action, action).
using ActionPair = std::pair<ActionKind, ActionKind>;

// The pairs of neighbours in a program's actions.
std::set<ActionPair> action_pairs_of(const Program& program);

// The pairs that occur in some program that refusal_before_run lets pass, found by trying each behind all
// legal beginnings of up to `longest_beginning` actions. A test holds that longer ones add no pair.
std::set<ActionPair> legal_action_pairs(std::size_t longest_beginning = 3);

}  // namespace gatherfuzz
