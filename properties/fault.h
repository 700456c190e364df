// Faults: changes planted in the stream of ops as the machine executes it. Nothing in impl/ knows of them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "impl/runtime/local/world.h"
#include "properties/program.h"

namespace gatherfuzz {

class FaultPlanter : public Interposer {
 public:
  // `iteration_of` gives the iteration that a rank is in, from 1; `param_index` finds a parameter by name (-1: none).
  FaultPlanter(World& world, std::vector<FaultSpec> faults, std::function<int(int rank)> iteration_of,
               std::function<int(const std::string& param)> param_index);

  int times(const OpRef& op) override;
  const std::byte* before(const OpRef& op) override;
  void after(const OpRef& op) override;
  bool honours_wait(int rank, const OpType* what) override;

  // Faults that changed nothing so far, as text; a program with such a fault shows nothing.
  std::vector<std::string> never_fired() const;

 private:
  struct Saved {
    Operand operand;
    std::vector<Segment> segments;
    std::vector<std::byte> bytes;
  };
  struct LastInstance {
    const OpType* type = nullptr;
    std::vector<std::max_align_t> storage;
    OpRef ref;
  };

  bool applies(const FaultSpec& fault, int rank) const;
  bool matches(const FaultSpec& fault, const OpRef& op) const;
  bool touches(const FaultSpec& fault, const OpRef& op) const;
  void insert_before(const FaultSpec& fault, const OpRef& op);
  const std::byte* with_coefficient(const FaultSpec& fault, const OpRef& op);
  void save_outputs(const FaultSpec& fault, const OpRef& op);

  World& world_;
  std::vector<FaultSpec> faults_;
  std::function<int(int)> iteration_of_;
  std::function<int(const std::string&)> param_index_;
  std::vector<bool> fired_;
  std::map<std::pair<std::string, int>, LastInstance> last_;  // by op name and rank, of ops that some fault inserts
  std::set<std::string> inserted_;
  std::map<int, std::vector<Saved>> saved_;  // by rank
  std::map<int, std::vector<std::max_align_t>> changed_;  // by rank: the op executed instead
};

}  // namespace gatherfuzz
