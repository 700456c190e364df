#include "properties/action_pairs.h"

#include <cassert>

#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

// With the least of everything that its line requires.
Action plainest(const ActionInfo& info) {
  Action action;
  action.kind = info.kind;
  for (const Argument<Action>& row : info.arguments) {
    if (!row.required) continue;
    const Bounds& bounds = row.bounds;
    // A number stands for a name too: all names are the same one.
    const std::string text = bounds.choices.empty() ? std::to_string(static_cast<int>(bounds.least))
                                                    : std::string(bounds.choices.front());
    [[maybe_unused]] const bool understood = row.read(action, bounds, text);
    assert(understood);
  }
  return action;
}

class PairSearch {
 public:
  explicit PairSearch(std::size_t longest_beginning) : longest_(longest_beginning) {
    program_.flags.loss_scale = 1.0;  // injections need it
    for (const ActionInfo& info : action_table()) actions_.push_back(plainest(info));
  }

  // Beginnings by length, so that most pairs are found behind a short one. What is refused stays refused
  // whatever follows, so only legal beginnings grow.
  std::set<ActionPair> find() {
    std::vector<std::vector<Action>> beginnings = {{}};
    for (std::size_t length = 0;; ++length) {
      for (const std::vector<Action>& beginning : beginnings) try_pairs_behind(beginning);
      if (length == longest_) return found_;
      std::vector<std::vector<Action>> longer;
      for (const std::vector<Action>& beginning : beginnings) {
        for (const Action& action : actions_) {
          program_.actions = beginning;
          program_.actions.push_back(action);
          if (!refusal_before_run(program_)) longer.push_back(program_.actions);
        }
      }
      beginnings = std::move(longer);
    }
  }

 private:
  void try_pairs_behind(const std::vector<Action>& beginning) {
    for (const Action& first : actions_) {
      for (const Action& second : actions_) {
        if (found_.contains({first.kind, second.kind})) continue;
        program_.actions = beginning;
        program_.actions.push_back(first);
        program_.actions.push_back(second);
        if (!refusal_before_run(program_)) found_.insert({first.kind, second.kind});
      }
    }
  }

  std::size_t longest_;
  Program program_;
  std::vector<Action> actions_;
  std::set<ActionPair> found_;
};

}  // namespace

std::set<ActionPair> action_pairs_of(const Program& program) {
  std::set<ActionPair> pairs;
  for (std::size_t i = 1; i < program.actions.size(); ++i)
    pairs.insert({program.actions[i - 1].kind, program.actions[i].kind});
  return pairs;
}

std::set<ActionPair> legal_action_pairs(std::size_t longest_beginning) {
  return PairSearch(longest_beginning).find();
}

}  // namespace gatherfuzz
