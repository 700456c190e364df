#include "properties/shrink.h"

#include "properties/program_lines.h"

namespace gatherfuzz {

namespace {

bool differs(const FlagInfo& info, const Flags& flags) {
  return info.get(flags) != info.get(Flags{});
}

// Collects candidates in the order in which they are offered.
class Candidates {
 public:
  explicit Candidates(const Program& program)
      : program_(program), refused_(refusal_before_run(program).has_value()) {}

  template <class Change>
  void offer(Change&& change) {
    Program candidate = program_;
    change(candidate);
    if (size_of_program(candidate) >= size_of_program(program_)) return;
    if (!refused_ && refusal_before_run(candidate)) return;
    found_.push_back(std::move(candidate));
  }

  std::vector<Program> take() { return std::move(found_); }

 private:
  const Program& program_;
  bool refused_;
  std::vector<Program> found_;
};

void without_schedule(const Program& program, Candidates& candidates) {
  candidates.offer([](Program& p) {
    p.flags.schedule = Schedule::fifo;
    p.flags.schedule_seed = 0;
    p.delays.clear();
  });
  for (size_t i = 0; i < program.delays.size(); ++i)
    candidates.offer([i](Program& p) { p.delays.erase(p.delays.begin() + static_cast<std::ptrdiff_t>(i)); });
  candidates.offer([](Program& p) { p.twin.reset(); });
}

// Halves, quarters and so on down to single ones, from the end: what comes last is needed least.
void without_actions(const Program& program, Candidates& candidates) {
  const size_t n = program.actions.size();
  for (size_t length = (n + 1) / 2; length >= 1; length = length > 1 ? (length + 1) / 2 : 0) {
    for (size_t end = n; end >= length; end -= length) {
      candidates.offer([&](Program& p) {
        const auto last = p.actions.begin() + static_cast<std::ptrdiff_t>(end);
        p.actions.erase(last - static_cast<std::ptrdiff_t>(length), last);
      });
    }
  }
}

// Actions that only make sense together: a loop's begin and end, an offload and its restore, a save and its
// load.
void without_pairs(const Program& program, Candidates& candidates) {
  for (size_t first = 0; first < program.actions.size(); ++first) {
    for (size_t second = first + 1; second < program.actions.size(); ++second) {
      if (program.actions[first].kind == program.actions[second].kind) continue;
      candidates.offer([&](Program& p) {
        p.actions.erase(p.actions.begin() + static_cast<std::ptrdiff_t>(second));
        p.actions.erase(p.actions.begin() + static_cast<std::ptrdiff_t>(first));
      });
    }
  }
}

// Both leave the hooks off: where a loop's end is what matters, the begin of a loop in its place may do.
void with_end_as_start(const Program& program, Candidates& candidates) {
  for (size_t start = 0; start < program.actions.size(); ++start) {
    if (program.actions[start].kind != ActionKind::start_loop) continue;
    for (size_t end = start + 1; end < program.actions.size(); ++end) {
      if (program.actions[end].kind != ActionKind::end_loop) continue;
      candidates.offer([&](Program& p) {
        p.actions[end] = Action{};
        p.actions[end].kind = ActionKind::start_loop;
        p.actions.erase(p.actions.begin() + static_cast<std::ptrdiff_t>(start));
      });
      break;
    }
  }
}

// Both call forward_backward: where the number of calls is what matters, one step more may do.
void with_reruns_as_steps(const Program& program, Candidates& candidates) {
  for (size_t i = 1; i < program.actions.size(); ++i) {
    if (program.actions[i].kind != ActionKind::rerun_forward_backward) continue;
    if (program.actions[i - 1].kind != ActionKind::train) continue;
    candidates.offer([&](Program& p) {
      ++p.actions[i - 1].count;
      p.actions.erase(p.actions.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
}

// `train 1`, `train 1` is `train 2`.
void with_neighbours_joined(const Program& program, Candidates& candidates) {
  for (size_t i = 1; i < program.actions.size(); ++i) {
    const Action &first = program.actions[i - 1], &second = program.actions[i];
    const bool counted = first.kind == ActionKind::train || first.kind == ActionKind::evaluate;
    if (!counted || first.kind != second.kind) continue;
    candidates.offer([&](Program& p) {
      p.actions[i - 1].count += second.count;
      p.actions.erase(p.actions.begin() + static_cast<std::ptrdiff_t>(i));
    });
  }
}

void with_smaller_counts(const Program& program, Candidates& candidates) {
  for (size_t i = 0; i < program.actions.size(); ++i) {
    const int count = program.actions[i].count;
    for (const int smaller : {1, count / 2, count - 1})
      if (smaller >= 1 && smaller < count)
        candidates.offer([&](Program& p) { p.actions[i].count = smaller; });
  }
}

void with_default_flags(const Program& program, Candidates& candidates) {
  for (const FlagInfo& info : flag_table())
    if (differs(info, program.flags))
      candidates.offer([&](Program& p) { info.set(p.flags, info.get(Flags{})); });
}

// Flags that need each other fall together: each pair.
void with_default_flag_pairs(const Program& program, Candidates& candidates) {
  for (const FlagInfo& first : flag_table()) {
    if (!differs(first, program.flags)) continue;
    for (const FlagInfo& second : flag_table()) {
      if (&second <= &first || !differs(second, program.flags)) continue;
      candidates.offer([&](Program& p) {
        first.set(p.flags, first.get(Flags{}));
        second.set(p.flags, second.get(Flags{}));
      });
    }
  }
}

void with_smaller_sizes(const Program& program, Candidates& candidates) {
  const Flags& f = program.flags;
  for (int ranks = 2; ranks < f.data_parallel_size; ++ranks)
    candidates.offer([&](Program& p) { p.flags.data_parallel_size = ranks; });
  for (int layers = 1; layers < f.num_layers; ++layers)
    candidates.offer([&](Program& p) { p.flags.num_layers = layers; });
  for (int n = 2; n < f.num_microbatches; ++n)
    candidates.offer([&](Program& p) { p.flags.num_microbatches = n; });
  for (int steps = 0; steps < f.cuda_graph_warmup_steps; ++steps)
    candidates.offer([&](Program& p) { p.flags.cuda_graph_warmup_steps = steps; });
  for (int n = 2; n < f.num_buckets.value_or(0); ++n)
    candidates.offer([&](Program& p) { p.flags.num_buckets = n; });
}

// Arguments of actions, other than counts.
void with_default_arguments(const Program& program, Candidates& candidates) {
  for (size_t i = 0; i < program.actions.size(); ++i) {
    candidates.offer([&](Program& p) {
      const Action old = p.actions[i];
      p.actions[i] = Action{};
      p.actions[i].kind = old.kind;
      p.actions[i].count = old.count;
      p.actions[i].name = old.name;
    });
    candidates.offer([&](Program& p) { p.actions[i].rank = 0; });
  }
}

int other_arguments(const Action& action) {
  int n = 0;
  for (const Argument<Action>& row : action_table()[static_cast<size_t>(action.kind)].arguments)
    n += !row.positional && !row.initial(action) ? 1 : 0;
  return n;
}

}  // namespace

ProgramSize size_of_program(const Program& program) {
  const Flags& f = program.flags;
  ProgramSize size{};
  size[0] = static_cast<int>(program.actions.size() + program.delays.size()) + (program.twin ? 1 : 0);
  for (const FlagInfo& info : flag_table()) size[0] += differs(info, f) ? 1 : 0;
  for (const Action& action : program.actions) {
    size[1] += action.count;
    size[3] += other_arguments(action);
  }
  size[2] = f.data_parallel_size + f.num_layers + f.num_microbatches + f.cuda_graph_warmup_steps +
            f.num_buckets.value_or(0);
  return size;
}

std::vector<Program> simpler(const Program& program) {
  Candidates candidates(program);
  without_schedule(program, candidates);
  without_actions(program, candidates);
  with_neighbours_joined(program, candidates);
  with_default_flags(program, candidates);
  with_smaller_counts(program, candidates);
  with_smaller_sizes(program, candidates);
  without_pairs(program, candidates);
  with_end_as_start(program, candidates);
  with_reruns_as_steps(program, candidates);
  with_default_flag_pairs(program, candidates);
  with_default_arguments(program, candidates);
  return candidates.take();
}

Shrunk shrink(const Program& program, const std::function<bool(const Program&)>& still_fails,
              ShrinkLimit limit) {
  const auto end = std::chrono::steady_clock::now() + limit.time;
  Shrunk shrunk{without_comments(program), 0, false};
  while (!shrunk.ended) {
    shrunk.ended = true;
    for (Program& candidate : simpler(shrunk.program)) {
      if (shrunk.runs >= limit.runs || std::chrono::steady_clock::now() >= end) {
        shrunk.ended = false;
        return shrunk;
      }
      ++shrunk.runs;
      if (!still_fails(candidate)) continue;
      shrunk.program = std::move(candidate);
      shrunk.ended = false;
      break;
    }
  }
  return shrunk;
}

}  // namespace gatherfuzz
