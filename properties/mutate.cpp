#include "properties/mutate.h"

#include <algorithm>

#include "properties/generator.h"
#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

constexpr int kMostEdits = 4;
constexpr std::size_t kMostActions = 24;

std::size_t index_below(Choices& choices, std::size_t n, const char* what) {
  return static_cast<std::size_t>(choices.below(n, what));
}

auto position(Program& p, std::size_t i) {
  return p.actions.begin() + static_cast<std::ptrdiff_t>(i);
}

// An action as it may stand in a generated program with these flags.
Action any_action(const Flags& flags, Choices& choices) {
  const std::vector<Action> drawn = generate_actions(choices, flags);
  return drawn[index_below(choices, drawn.size(), "which action")];
}

// Of a rule that is broken, all flags become like the drawn ones, which break none: so no flag is kept out
// by another.
void follow_rules(Flags& flags, const Flags& drawn) {
  for (std::size_t i = 0; i < flag_rules().size(); ++i) {
    const std::vector<FlagConflict> broken = validate(flags);
    if (broken.empty()) return;
    for (const std::string_view name : broken.front().names) {
      const FlagInfo* info = find_flag(name);
      info->set(flags, info->get(drawn));
    }
  }
}

// From a flag that the drawn ones have otherwise on, `most` flags become like the drawn ones. Flags that
// belong together are neighbours in the table.
void change_flags(Program& p, int most, Choices& choices) {
  const Flags drawn = generate_flags(choices);
  const std::span<const FlagInfo> table = flag_table();
  const std::size_t start = index_below(choices, table.size(), "which flag");
  for (std::size_t i = 0; i < table.size() && most > 0; ++i) {
    const FlagInfo& info = table[(start + i) % table.size()];
    if (info.get(drawn) == info.get(p.flags)) continue;
    info.set(p.flags, info.get(drawn));
    --most;
  }
  follow_rules(p.flags, drawn);
}

void change_schedule(Program& p, Choices& choices) {
  if (p.flags.schedule != Schedule::fifo || !p.delays.empty()) {  // back to the plain order, or on from it
    if (flip(choices, 50, "plain order")) {
      p.flags.schedule = Schedule::fifo;
      p.delays.clear();
      return;
    }
  }
  if (flip(choices, 50, "delay")) {
    p.delays.assign(1, generate_delay(choices));
    return;
  }
  p.flags.schedule = pick<Schedule>(
      choices, {{Schedule::reverse, 1}, {Schedule::random, 1}, {Schedule::pct, 1}}, "schedule");
  p.flags.schedule_seed = choices.below(1000, "schedule_seed");
}

// Numbers stay small: programs are to stay fast. Of a checkpoint's name they are digits, which a save and its
// load may come to share.
void change_argument(Action& action, Choices& choices) {
  const std::span<const Argument<Action>> rows = action_table()[static_cast<size_t>(action.kind)].arguments;
  if (rows.empty()) return;
  const Argument<Action>& row = rows[index_below(choices, rows.size(), "which argument")];
  const Bounds& bounds = row.bounds;
  const int least = static_cast<int>(bounds.least), most = static_cast<int>(bounds.most);
  const std::string text =
      bounds.choices.empty()
          ? std::to_string(pick_between(choices, least, std::min(most, least + 3), "number"))
          : std::string(bounds.choices[index_below(choices, bounds.choices.size(), "choice")]);
  row.read(action, bounds, text);
}

void move_action(Program& p, std::size_t from, std::size_t to) {
  Action action = std::move(p.actions[from]);
  p.actions.erase(position(p, from));
  p.actions.insert(position(p, to), std::move(action));
}

void edit(Program& p, Choices& choices) {
  enum class Edit { insert, remove, repeat, swap, move, replace, argument, flag, flags, schedule };
  const Edit kind = pick<Edit>(choices,
                               {{Edit::insert, 30},
                                {Edit::remove, 15},
                                {Edit::repeat, 10},
                                {Edit::swap, 5},
                                {Edit::move, 5},
                                {Edit::replace, 10},
                                {Edit::argument, 10},
                                {Edit::flag, 11},
                                {Edit::flags, 3},
                                {Edit::schedule, 1}},
                               "edit");
  if (kind == Edit::flag) return change_flags(p, 1, choices);
  if (kind == Edit::flags) return change_flags(p, 5, choices);
  if (kind == Edit::schedule) return change_schedule(p, choices);
  const std::size_t n = p.actions.size();
  if (kind == Edit::insert || n == 0) {
    const Action action = any_action(p.flags, choices);
    p.actions.insert(position(p, index_below(choices, n + 1, "where")), action);
    return;
  }
  const std::size_t i = index_below(choices, n, "which");
  if (kind == Edit::remove) p.actions.erase(position(p, i));
  if (kind == Edit::repeat) p.actions.insert(position(p, i), Action(p.actions[i]));
  if (kind == Edit::swap) std::swap(p.actions[i], p.actions[index_below(choices, n, "with which")]);
  if (kind == Edit::move) move_action(p, i, index_below(choices, n, "to where"));
  if (kind == Edit::replace) p.actions[i] = any_action(p.flags, choices);
  if (kind == Edit::argument) change_argument(p.actions[i], choices);
}

// Leaves out what may not stand where it is, and takes steps from the longest until there are few enough.
void make_legal(Program& p) {
  repair_flags(p.flags);
  if (p.actions.size() > kMostActions) p.actions.resize(kMostActions);
  while (training_steps(p) > kMostGeneratedSteps) {
    const auto longest =
        std::max_element(p.actions.begin(), p.actions.end(), [](const Action& a, const Action& b) {
          const auto steps = [](const Action& x) {
            return x.kind == ActionKind::train || x.kind == ActionKind::warmup ? x.count : 0;
          };
          return steps(a) < steps(b);
        });
    if (longest->count > 1) {
      --longest->count;
    } else {
      p.actions.erase(longest);
    }
  }
  if (refusal_before_run(p)) {
    std::vector<Action> all = std::move(p.actions);
    p.actions.clear();
    for (Action& action : all) {
      p.actions.push_back(std::move(action));
      if (refusal_before_run(p)) p.actions.pop_back();
    }
  }
  make_it_train(p);
}

}  // namespace

Program mutate(const Program& program, Choices& choices) {
  Program result;
  result.flags = program.flags;
  result.delays = program.delays;
  result.actions = program.actions;
  for (int edits = pick_between(choices, 1, kMostEdits, "edits"); edits > 0; --edits) edit(result, choices);
  result = without_comments(std::move(result));
  make_legal(result);
  return result;
}

Program splice(const Program& first, const Program& second, Choices& choices) {
  const Program& frame = flip(choices, 50, "whose flags") ? second : first;
  Program result;
  result.flags = frame.flags;
  result.delays = frame.delays;
  const std::size_t end = index_below(choices, first.actions.size() + 1, "end of the first");
  const std::size_t begin = index_below(choices, second.actions.size() + 1, "begin of the second");
  result.actions.assign(first.actions.begin(), first.actions.begin() + static_cast<std::ptrdiff_t>(end));
  result.actions.insert(result.actions.end(), second.actions.begin() + static_cast<std::ptrdiff_t>(begin),
                        second.actions.end());
  result = without_comments(std::move(result));
  make_legal(result);
  return result;
}

}  // namespace gatherfuzz
