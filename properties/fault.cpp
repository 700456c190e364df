#include "properties/fault.h"

#include <cstring>

namespace gatherfuzz {

namespace {

constexpr std::size_t kUnit = sizeof(std::max_align_t);

std::vector<std::max_align_t> copy_of(const OpRef& op) {
  std::vector<std::max_align_t> storage((op.type->size + kUnit - 1) / kUnit);
  std::memcpy(storage.data(), op.op, op.type->size);
  return storage;
}

const char* operand_name(Plane plane) {
  switch (plane) {
    case Plane::whole:
      return "whole";
    case Plane::rowwise:
      return "rowwise";
    case Plane::rowwise_scale:
      return "rowwise_scale";
    case Plane::columnwise:
      return "columnwise";
    case Plane::columnwise_scale:
      return "columnwise_scale";
    case Plane::none:
      return "";
  }
  return "";
}

}  // namespace

FaultPlanter::FaultPlanter(World& world, std::vector<FaultSpec> faults, Clock clock,
                           std::function<int(const std::string&)> param_index)
    : world_(world),
      faults_(std::move(faults)),
      clock_(std::move(clock)),
      param_index_(std::move(param_index)),
      fired_(faults_.size(), false) {}

bool FaultPlanter::applies(const FaultSpec& fault, int rank, int iteration) const {
  if (iteration < 1) return false;  // before the program's first step the model is still being set up
  if (fault.rank && *fault.rank != rank) return false;
  if (fault.when == FaultWhen::replay_with_hooks_off && !clock_.replays_with_hooks_off(iteration))
    return false;
  if (!fault.after.empty() && !clock_.comes_after(iteration, fault.after)) return false;
  return !fault.iteration || fault.iteration->contains(iteration);
}

// Bucket and parameter are the tags of operands.
bool FaultPlanter::touches(const FaultSpec& fault, const OpRef& op) const {
  if (!fault.bucket && fault.param.empty()) return true;
  const int wanted = fault.bucket ? *fault.bucket : param_index_(fault.param);
  bool found = false;
  for_each_access(*op.type, op.op, [&](const Operand& operand, const OperandField&) {
    found = found || operand.tag == wanted + 1;
  });
  return found;
}

// An inserted op is told by bucket or parameter; the one that it goes before is not.
bool FaultPlanter::matches(const FaultSpec& fault, const OpRef& op) const {
  const bool insert = fault.kind == FaultKind::insert;
  return (insert ? fault.before : fault.op) == op.type->name &&
         applies(fault, op.rank, clock_.executing(op.rank)) && (insert || touches(fault, op));
}

int FaultPlanter::times(const OpRef& op) {
  int times = 1;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    if (faults_[i].kind != FaultKind::drop && faults_[i].kind != FaultKind::duplicate) continue;
    if (!matches(faults_[i], op)) continue;
    fired_[i] = true;
    if (faults_[i].kind == FaultKind::drop) return 0;
    times = 2;
  }
  return times;
}

const std::byte* FaultPlanter::before(const OpRef& op) {
  const std::byte* instead = nullptr;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const FaultSpec& fault = faults_[i];
    if (!matches(fault, op)) continue;
    if (fault.kind == FaultKind::insert) {
      if (last_.count({i, op.rank}) == 0) continue;
      fired_[i] = true;
      insert_again(last_.at({i, op.rank}));
    } else if (fault.kind == FaultKind::coefficient && !op.type->coefficients.empty()) {
      fired_[i] = true;
      instead = with_coefficient(fault, op);
    } else if (fault.kind == FaultKind::previous_value) {
      fired_[i] = true;
      save_outputs(fault, op);
    }
  }
  return instead;
}

void FaultPlanter::insert_again(const LastInstance& last) {
  OpRef again = last.ref;
  again.op = reinterpret_cast<const std::byte*>(last.storage.data());
  world_.execute_now(again);
}

const std::byte* FaultPlanter::with_coefficient(const FaultSpec& fault, const OpRef& op) {
  std::vector<std::max_align_t>& storage = changed_[op.rank];
  storage = copy_of(op);
  auto* bytes = reinterpret_cast<std::byte*>(storage.data());
  for (const uint16_t offset : op.type->coefficients)
    reinterpret_cast<Coefficient*>(bytes + offset)->value *= static_cast<float>(fault.by.value_or(2.0));
  return bytes;
}

// The op runs, and then its outputs hold what they held before it: the previous version's value.
void FaultPlanter::save_outputs(const FaultSpec& fault, const OpRef& op) {
  for_each_access(*op.type, op.op, [&](const Operand& operand, const OperandField& field) {
    if (field.mode == Mode::read) return;
    const std::string plane = operand_name(field.plane);
    if (!fault.operand.empty() && plane != fault.operand && plane != fault.operand + "_scale") return;
    Saved saved;
    saved.operand = operand;
    const auto r = static_cast<std::size_t>(op.rank);
    if (world_.memory_kind() == MemoryKind::symbolic) {
      saved.segments = world_.symbolic()[r].save(operand);
    } else {
      saved.bytes = world_.host()[r].save(operand);
    }
    saved_[op.rank].push_back(std::move(saved));
  });
}

void FaultPlanter::after(const OpRef& op) {
  const auto r = static_cast<std::size_t>(op.rank);
  if (const auto saved = saved_.find(op.rank); saved != saved_.end()) {
    for (const Saved& s : saved->second) {
      if (world_.memory_kind() == MemoryKind::symbolic) {
        world_.symbolic()[r].restore(s.operand, s.segments);
      } else {
        world_.host()[r].restore(s.operand, s.bytes);
      }
    }
    saved_.erase(saved);
  }
  for (std::size_t i = 0; i < faults_.size(); ++i)
    if (faults_[i].kind == FaultKind::insert && faults_[i].op == op.type->name && touches(faults_[i], op))
      last_[{i, op.rank}] = {copy_of(op), op};
}

bool FaultPlanter::honours_wait(int rank, const OpType* what, bool capturing) {
  const int iteration = capturing ? clock_.issuing(rank) : clock_.executing(rank);
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const FaultSpec& fault = faults_[i];
    if (fault.kind != FaultKind::drop_wait || what == nullptr || fault.op != what->name) continue;
    if (!applies(fault, rank, iteration)) continue;
    fired_[i] = true;
    return false;
  }
  return true;
}

std::vector<std::string> FaultPlanter::never_fired() const {
  std::vector<std::string> idle;
  for (std::size_t i = 0; i < faults_.size(); ++i)
    if (!fired_[i]) idle.push_back(print_fault(faults_[i]));
  return idle;
}

}  // namespace gatherfuzz
