// Faults: changes planted in the stream of ops as the machine executes it. Nothing in impl/ knows of them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "impl/runtime/local/world.h"
#include "properties/program.h"

namespace gatherfuzz {

class FaultPlanter : public Interposer {
 public:
  // The iteration that a rank's ops, or its host code, are in, from 1. The host code runs ahead of its ops.
  struct Clock {
    std::function<int(int rank)> executing;
    std::function<int(int rank)> issuing;
    // Whether an iteration replays a captured graph while hooks are off.
    std::function<bool(int iteration)> replays_with_hooks_off;
    // Whether these actions, in this order, come before the one that an iteration is part of.
    std::function<bool(int iteration, const std::vector<ActionKind>& actions)> comes_after;
  };
  // `param_index` finds a parameter by name (-1: none).
  FaultPlanter(World& world, std::vector<FaultSpec> faults, Clock clock,
               std::function<int(const std::string& param)> param_index);

  int times(const OpRef& op) override;
  const std::byte* before(const OpRef& op) override;
  void after(const OpRef& op) override;
  bool honours_wait(int rank, const OpType* what, bool capturing) override;

  // Faults that changed nothing so far, as text; a program with such a fault shows nothing.
  std::vector<std::string> never_fired() const;

 private:
  struct Saved {
    Operand operand;
    std::vector<Segment> segments;
    std::vector<std::byte> bytes;
  };
  struct LastInstance {
    std::vector<std::max_align_t> storage;
    OpRef ref;
  };

  bool applies(const FaultSpec& fault, int rank, int iteration) const;
  bool matches(const FaultSpec& fault, const OpRef& op) const;
  bool touches(const FaultSpec& fault, const OpRef& op) const;
  void insert_again(const LastInstance& last);
  const std::byte* with_coefficient(const FaultSpec& fault, const OpRef& op);
  void save_outputs(const FaultSpec& fault, const OpRef& op);

  World& world_;
  std::vector<FaultSpec> faults_;
  Clock clock_;
  std::function<int(const std::string&)> param_index_;
  std::vector<bool> fired_;
  std::map<std::pair<std::size_t, int>, LastInstance>
      last_;                                              // by fault and rank, of ops that a fault inserts
  std::map<int, std::vector<Saved>> saved_;               // by rank
  std::map<int, std::vector<std::max_align_t>> changed_;  // by rank: the op executed instead
};

}  // namespace gatherfuzz
