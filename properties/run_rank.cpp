#include "properties/run_rank.h"

namespace gatherfuzz {

RankProgram::RankProgram(Runtime& runtime, const Program& program, const RunOptions& options,
                         const Dataset& dataset, Monitor& monitor, RankModels& models, const TrainStep* like,
                         int& steps, StateCollector& collector)
    : runtime_(runtime),
      program_(program),
      options_(options),
      dataset_(dataset),
      monitor_(monitor),
      models_(models),
      steps_(steps),
      collector_(collector),
      states_(program.flags) {
  build(like, {});
  if (options.start != nullptr) loop_->resume(*options.start);
  monitor.attach(runtime.rank(), *step_);
}

void RankProgram::build(const TrainStep* like, LoopSnapshots snapshots) {
  const bool coarse = options_.coarse.value_or(options_.runtime == RuntimeKind::symbolic);
  models_.push_back(std::make_unique<TrainStep>(runtime_, program_.flags, dataset_, coarse, like));
  step_ = models_.back().get();
  loop_.emplace(*step_, std::move(snapshots));
}

void RankProgram::run() {
  for (const Action& action : program_.actions) apply(action);
  mark(MarkCode::end, 0);
}

void RankProgram::apply(const Action& action) {
  look(action.kind);
  switch (action.kind) {
    case ActionKind::train:
      train(action.count);
      break;
    case ActionKind::warmup:
      mark(MarkCode::save, 0);
      loop_->begin_warmup();
      train(action.count);
      mark(MarkCode::restore, 0);
      loop_->end_warmup();
      break;
    case ActionKind::start_loop:
      loop_->start_loop(action.hooks_on);
      break;
    case ActionKind::end_loop:
      loop_->end_loop(action.keep_graph);
      break;
    case ActionKind::evaluate:
      loop_->evaluate(action.count);
      break;
    case ActionKind::inject_nonfinite:
      if (action.rank == runtime_.rank())
        step_->inject(action.where == InjectionPlace::grad ? Injection::grad : Injection::shard);
      break;
    case ActionKind::skip_iteration:
      step_->skip_batch();
      break;
    case ActionKind::set_microbatches:
      step_->set_microbatches(action.count);
      break;
    case ActionKind::reset_graph:
      step_->reset_graph();
      break;
    case ActionKind::check_weight_hashes:
      loop_->check_weight_hashes();
      break;
    case ActionKind::rerun_forward_backward:
      mark(MarkCode::rerun, 0);
      loop_->rerun_forward_backward();
      break;
    case ActionKind::offload_grad_buffers:
      loop_->offload_grad_buffers();
      break;
    case ActionKind::restore_grad_buffers:
      loop_->restore_grad_buffers();
      break;
    case ActionKind::save_checkpoint:
      save(action.name);
      break;
    case ActionKind::load_checkpoint:
      load(action.name);
      break;
  }
}

void RankProgram::save(const std::string& name) {
  mark(MarkCode::save, slots_.try_emplace(name, static_cast<int>(slots_.size()) + 1).first->second);
  loop_->save_checkpoint(name);
  if (options_.restart_at_save && models_.size() == 1) restart_from(name);
}

void RankProgram::load(const std::string& name) {
  mark(MarkCode::restore, slots_.at(name));
  loop_->load_checkpoint(name);
}

// An injection waits in the host code for the next iteration, whichever model takes it.
void RankProgram::restart_from(const std::string& name) {
  runtime_.synchronize_stream(step_->parts().streams.compute);
  runtime_.synchronize_stream(step_->parts().streams.comm);
  const Injection pending = step_->pending_injection();
  build(nullptr, loop_->snapshots());
  loop_->load_checkpoint(name);
  step_->inject(pending);
  monitor_.attach(runtime_.rank(), *step_);
}

// All ranks go through the same host states, and a twin through none that counts.
void RankProgram::look(ActionKind action) {
  if (runtime_.rank() == 0 && options_.judging != Judging::none) states_.before(action, *step_);
}

void RankProgram::train(int count) {
  for (int i = 0; i < count; ++i) {
    if (i > 0) look(ActionKind::train);
    mark(MarkCode::step_begin, steps_);
    const bool taken = loop_->train_step();
    mark(MarkCode::step_end, steps_);
    if (options_.on_step) tell(taken);
    ++steps_;
    if (collector_.wanted(options_, steps_)) collector_.add(*loop_, options_);
  }
}

void RankProgram::tell(bool taken) {
  const StreamId compute = step_->parts().streams.compute;
  const auto loss = static_cast<float>(runtime_.read(compute, step_->reduced_loss()).value);
  const auto norm = static_cast<float>(runtime_.read(compute, step_->parts().optimizer->norm()).value);
  if (runtime_.rank() == 0) options_.on_step({steps_, loss, norm, taken});
}

void RankProgram::mark(MarkCode code, int detail) {
  runtime_.mark(step_->parts().streams.compute,
                {static_cast<uint32_t>(code), static_cast<uint32_t>(detail), 0});
}

}  // namespace gatherfuzz
