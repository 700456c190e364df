// What led to a failure: every op of a run is kept, and when an oracle has spoken the bytes that it looked at
// are followed backwards, from last writer to last writer; those of a reduced gradient to what each rank had
// there.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "impl/runtime/local/world.h"
#include "properties/violation.h"

namespace gatherfuzz {

// One op that wrote bytes on the way to the failure.
struct Writer {
  int iteration = 0;
  int rank = 0;
  std::string stream;
  std::string op;
  std::string what;  // "layers.0.qkv <- shared param and grad buffer [0, 6144)"
  int graph = 0;     // 0: launched eagerly
};

struct Story {
  std::vector<Writer> last_writers;  // latest first
  std::string missing;  // "all_gather on rank 0, between adam and layer_forward"; empty if unknown
};

// Stands before another observer and keeps what executes.
class Recorder : public Observer {
 public:
  Recorder(const World& world, Observer& next, std::function<int(int rank)> iteration)
      : world_(world), next_(next), iteration_(std::move(iteration)) {}

  void before(const OpRef& op) override;
  void after(const OpRef& op) override { next_.after(op); }
  void mark(int rank, const Mark& mark) override { next_.mark(rank, mark); }

  // `param_name` names a parameter by its tag. The models whose ops were recorded must still exist.
  Story tell(const Violation& violation, const std::function<std::string(uint16_t tag)>& param_name) const;

 private:
  struct Executed {
    OpRef ref;
    int iteration = 0;
    std::vector<std::max_align_t> storage;  // the op's bytes, which `ref` points to
  };
  struct Place {
    int rank = 0;
    Operand operand;
  };

  std::vector<std::size_t> last_writers(const Place& place, std::size_t before) const;
  Story tell_reduced(std::size_t reduction, const Place& place,
                     const std::function<std::string(uint16_t)>& param_name) const;
  std::size_t last_reduction(const Place& place) const;
  void add_reduced_ranks(std::vector<std::size_t>& writers, const Place& place) const;
  bool updates(std::size_t writer, const Place& place) const;
  std::vector<Place> sources(const Executed& writer, const Place& written) const;
  std::string missing_link(std::size_t writer, std::size_t reader, const Place& place, bool weight) const;
  Operand part_written_by(std::size_t writer, const Operand& bytes) const;
  bool alone(std::string_view op) const;
  bool ran_between(std::string_view op, const Place& place, std::size_t first, std::size_t last) const;
  std::size_t last_step(int rank, std::size_t before) const;
  Writer describe(const Executed& e, const Place& written,
                  const std::function<std::string(uint16_t)>& param_name) const;

  const World& world_;
  Observer& next_;
  std::function<int(int)> iteration_;
  std::vector<Executed> log_;
};

}  // namespace gatherfuzz
