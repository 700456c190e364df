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
    case Plane::whole: return "whole";
    case Plane::rowwise: return "rowwise";
    case Plane::rowwise_scale: return "rowwise_scale";
    case Plane::columnwise: return "columnwise";
    case Plane::columnwise_scale: return "columnwise_scale";
    case Plane::none: return "";
  }
  return "";
}

}  // namespace

FaultPlanter::FaultPlanter(World& world, std::vector<FaultSpec> faults, std::function<int(int)> iteration_of,
                           std::function<int(const std::string&)> param_index)
    : world_(world), faults_(std::move(faults)), iteration_of_(std::move(iteration_of)),
      param_index_(std::move(param_index)), fired_(faults_.size(), false) {
  for (const FaultSpec& fault : faults_)
    if (fault.kind == FaultKind::insert) inserted_.insert(fault.op);
}

bool FaultPlanter::applies(const FaultSpec& fault, int rank) const {
  const int iteration = iteration_of_(rank);
  if (iteration < 1) return false;  // before the program's first step the model is still being set up
  if (fault.rank && *fault.rank != rank) return false;
  return !fault.iteration || fault.iteration->contains(iteration);
}

// Bucket and parameter are the tags of operands.
bool FaultPlanter::touches(const FaultSpec& fault, const OpRef& op) const {
  if (!fault.bucket && fault.param.empty()) return true;
  const int wanted = fault.bucket ? *fault.bucket : param_index_(fault.param);
  bool found = false;
  for_each_access(*op.type, op.op,
                  [&](const Operand& operand, const OperandField&) { found = found || operand.tag == wanted + 1; });
  return found;
}

bool FaultPlanter::matches(const FaultSpec& fault, const OpRef& op) const {
  const std::string& name = fault.kind == FaultKind::insert ? fault.before : fault.op;
  return name == op.type->name && applies(fault, op.rank) && touches(fault, op);
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
      if (last_.count({fault.op, op.rank}) == 0) continue;
      fired_[i] = true;
      insert_before(fault, op);
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

void FaultPlanter::insert_before(const FaultSpec& fault, const OpRef& op) {
  const LastInstance& last = last_.at({fault.op, op.rank});
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
  if (inserted_.count(op.type->name) != 0) last_[{op.type->name, op.rank}] = {op.type, copy_of(op), op};
}

bool FaultPlanter::honours_wait(int rank, const OpType* what) {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const FaultSpec& fault = faults_[i];
    if (fault.kind != FaultKind::drop_wait || what == nullptr || fault.op != what->name || !applies(fault, rank)) continue;
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
