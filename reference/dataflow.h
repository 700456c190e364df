// Expected dataflow: which value every main param, moment, weight and reduced gradient must hold at each
// version, from main params, moments and labels alone. Knows no layer: what a gradient contribution is, it is
// told; that every contribution must be there once, it demands.
//
// Algebra gives the value type and the operations on it:
//   Value zero(); Value add(Value, Value); Value scale(Value, float); Value divide(Value, Value tokens);
//   Value squares(Value, elements);
//   Value norm(Value squares); Value clip(Value norm, float limit);
//   State adam(State before, Value grad, Value coefficient, int step, float weight_decay);
//   State {Value main, exp_avg, exp_avg_sq}
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace gatherfuzz::reference {

struct DataflowRules {
  int ranks = 1;
  std::optional<double> loss_scale;
  double clip_grad = 1.0;
  std::vector<float> weight_decay = {};  // by param
};

// The contributions to one parameter's gradient in one step: one of each rank, microbatch and use of the
// parameter in the model (a tied embedding has two).
template <class Value>
struct Contributions {
  std::vector<std::optional<Value>> by_source;  // [(rank * microbatches + microbatch) * uses + use]
  bool foreign = false;                         // something else was added
};

template <class Algebra>
class Dataflow {
 public:
  using Value = typename Algebra::Value;
  using State = typename Algebra::State;

  Dataflow(Algebra algebra, DataflowRules rules, std::vector<uint32_t> elements, std::vector<State> initial)
      : algebra_(std::move(algebra)), rules_(rules), elements_(std::move(elements)) {
    versions_.push_back(std::move(initial));
    steps_taken_.push_back(0);
  }

  std::size_t params() const { return elements_.size(); }
  int current() const { return static_cast<int>(versions_.size()) - 1; }
  // By param.
  const std::vector<State>& states(int version) const { return versions_[static_cast<std::size_t>(version)]; }

  // What the optimizer must find as the reduced gradient: the mean over ranks of the sum over microbatches;
  // or, given the number of tokens on all ranks, the sum divided by it. Empty if a contribution is missing or
  // a foreign one was added.
  std::optional<Value> reduced(const Contributions<Value>& contributions,
                               const std::optional<Value>& tokens) const {
    if (contributions.foreign) return std::nullopt;
    Value sum = algebra_.zero();
    for (const std::optional<Value>& c : contributions.by_source) {
      if (!c) return std::nullopt;
      sum = algebra_.add(sum, *c);
    }
    if (tokens) return algebra_.divide(sum, *tokens);
    return rules_.ranks == 1 ? sum : algebra_.scale(sum, 1.0f / static_cast<float>(rules_.ranks));
  }

  // The next version of everything, from the reduced gradients of all params.
  void take_step(const std::vector<Value>& reduced_gradients) {
    std::vector<Value> grads = reduced_gradients;
    Value squares = algebra_.zero();
    for (std::size_t p = 0; p < grads.size(); ++p) {
      if (rules_.loss_scale)
        grads[p] = algebra_.scale(grads[p], 1.0f / static_cast<float>(*rules_.loss_scale));
      squares = algebra_.add(squares, algebra_.squares(grads[p], elements_[p]));
    }
    const Value coefficient = algebra_.clip(algebra_.norm(squares), static_cast<float>(rules_.clip_grad));
    const int step = steps_taken_.back() + 1;
    std::vector<State> next = versions_.back();
    for (std::size_t p = 0; p < grads.size(); ++p)
      next[p] = algebra_.adam(next[p], grads[p], coefficient, step, rules_.weight_decay[p]);
    versions_.push_back(std::move(next));
    steps_taken_.push_back(step);
  }

  // A later version that equals an earlier one: state restored after a warmup.
  void restore(int version) {
    versions_.push_back(versions_[static_cast<std::size_t>(version)]);
    steps_taken_.push_back(steps_taken_[static_cast<std::size_t>(version)]);
  }

 private:
  Algebra algebra_;
  DataflowRules rules_;
  std::vector<uint32_t> elements_;
  std::vector<std::vector<State>> versions_;
  std::vector<int> steps_taken_;
};

}  // namespace gatherfuzz::reference
