#include "impl/runtime/local/world.h"

#include <utility>

#include "impl/runtime/local/rank.h"

namespace gatherfuzz {

World::World(WorldOptions options) : options_(std::move(options)) {
  for (int r = 0; r < options_.ranks; ++r) {
    if (options_.memory == MemoryKind::symbolic) {
      symbolic_.emplace_back(r);
    } else {
      host_.emplace_back(r);
    }
    rank_runtimes_.push_back(std::make_unique<RankRuntime>(*this, r));
  }
  drain_ = in_issue_order() ? make_fifo_drain(*this) : make_seeded_drain(*this);
}

World::~World() = default;

const std::vector<std::unique_ptr<GraphExec>>& World::graphs(int rank) const {
  return rank_runtimes_[static_cast<std::size_t>(rank)]->graphs_;
}

const char* World::stream_name(int rank, StreamId stream) const {
  return rank_runtimes_[static_cast<std::size_t>(rank)]->stream_name(stream);
}

const char* World::buffer_name(int rank, BufferId buffer) const {
  return rank_runtimes_[static_cast<std::size_t>(rank)]->buffer_name(buffer);
}

void World::run(const std::function<void(Runtime&)>& body) {
  stop_ = false;
  for (auto& rank : rank_runtimes_) {
    RankRuntime* r = rank.get();
    r->fiber_ = std::make_unique<Fiber>([r, &body] { body(*r); });
    r->waiting_for_ = nullptr;
  }
  const World* outer = std::exchange(RankRuntime::world_running_here, this);
  try {
    run_to_the_end();
  } catch (...) {
    unwind();
    RankRuntime::world_running_here = outer;
    throw;
  }
  unwind();
  RankRuntime::world_running_here = outer;
}

void World::run_to_the_end() {
  for (bool progress = true; progress && !stop_;) {
    progress = false;
    for (auto& rank : rank_runtimes_) {
      Fiber& fiber = *rank->fiber_;
      if (fiber.done() || (rank->waiting_for_ && !rank->waiting_for_())) continue;
      rank->waiting_for_ = nullptr;
      fiber.resume();
      progress = true;
      if (fiber.error()) std::rethrow_exception(fiber.error());
    }
    progress = drain_->step() || progress;
  }
  if (stop_) return;
  std::string stuck = drain_->stuck();
  for (auto& rank : rank_runtimes_)
    if (stuck.empty() && !rank->fiber_->done())
      stuck = "rank " + std::to_string(rank->rank_) + "'s host waits for a value that no stream will produce";
  if (!stuck.empty()) throw Deadlock{stuck};
}

bool World::any_host_may_run() const {
  for (const auto& rank : rank_runtimes_)
    if (!rank->fiber_->done() && (!rank->waiting_for_ || rank->waiting_for_())) return true;
  return false;
}

void World::unwind() {
  for (auto& rank : rank_runtimes_) {
    rank->fiber_->cancel();
    rank->waiting_for_ = nullptr;
    rank->queue_.clear();
    rank->storage_.clear();
  }
  drain_->forget();
}

void World::call(const OpRef& ref) {
  const auto r = static_cast<std::size_t>(ref.rank);
  if (options_.memory == MemoryKind::symbolic) {
    ref.type->symbolic(ref.op, symbolic_[r]);
  } else {
    ref.type->host(ref.op, host_[r]);
    host_[r].end_op();
  }
}

void World::execute_now(const OpRef& ref) {
  count_op();
  if (observer_ != nullptr) observer_->before(ref);
  call(ref);
  if (observer_ != nullptr) observer_->after(ref);
}

void World::execute(const OpRef& ref) {
  if (interposer_ == nullptr) {
    execute_now(ref);
    return;
  }
  const int times = interposer_->times(ref);
  for (int i = 0; i < times && !stop_; ++i) {
    OpRef changed = ref;
    if (const std::byte* bytes = interposer_->before(ref)) changed.op = bytes;
    execute_now(changed);
    interposer_->after(changed);
  }
}

void World::execute_collective(std::vector<OpRef>& ops) {
  collective_.clear();
  for (OpRef& ref : ops) {
    count_op();
    if (interposer_ != nullptr)
      if (const std::byte* changed = interposer_->before(ref)) ref.op = changed;
    collective_.push_back(ref.op);
  }
  if (observer_ != nullptr)
    for (const OpRef& ref : ops) observer_->before(ref);
  if (options_.memory == MemoryKind::symbolic) {
    ops[0].type->symbolic_collective(collective_, symbolic_);
  } else {
    ops[0].type->host_collective(collective_, host_);
  }
  for (const OpRef& ref : ops) {
    if (observer_ != nullptr) observer_->after(ref);
    if (interposer_ != nullptr) interposer_->after(ref);
  }
}

}  // namespace gatherfuzz
