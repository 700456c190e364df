#include "properties/story.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "impl/kernels/adam.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

namespace {

constexpr std::size_t kMostLines = 8;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Which ops must have written what an op reads; the usual one first. Readers of weights, and those that add a
// gradient, are of several names. `after`: the row is for bytes that one of these wrote instead.
struct Need {
  std::string_view reader;
  std::vector<std::string_view> writers;
  std::vector<std::string_view> after;
};
constexpr std::string_view kWeightReader = "a reader of weights";
constexpr std::string_view kFirstSum = "the first sum into a gradient";
constexpr std::string_view kStage = "copy_main_params_to_param_buffer";

const std::vector<Need>& needs() {
  static const std::vector<Need> table = {
      {"all_gather", {kStage}, {}},
      {"quantize", {"all_gather", kStage}, {}},
      {kWeightReader, {"quantize", "quantize_on_use", "all_gather", kStage}, {}},
      {kFirstSum, {"zero_param_range"}, {"all_gather", kStage}},
      {kFirstSum, {"zero_grad_buffer", "zero_param_range"}, {}},
      {"copy_reduced_grads", {"reduce_scatter"}, {}},
  };
  return table;
}

bool holds(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool overlaps(const Operand& a, const Operand& b) {
  return a.buffer == b.buffer && a.begin < b.end() && b.begin < a.end();
}

bool is_collective(const OpRef& ref) {
  return ref.type->collective();
}

std::string range_text(const Operand& operand) {
  return "[" + std::to_string(operand.begin) + ", " + std::to_string(operand.end()) + ")";
}

}  // namespace

void Recorder::before(const OpRef& op) {
  Executed e;
  e.ref = op;
  e.iteration = iteration_(op.rank);
  e.storage.resize(op.type->size / sizeof(std::max_align_t) + 1);
  std::memcpy(e.storage.data(), op.op, op.type->size);
  log_.push_back(std::move(e));
  log_.back().ref.op = reinterpret_cast<const std::byte*>(log_.back().storage.data());
  next_.before(op);
}

// The ops that last wrote the bytes, which together cover what of them was ever written; latest first.
std::vector<std::size_t> Recorder::last_writers(const Place& place, std::size_t before) const {
  std::vector<std::size_t> writers;
  std::vector<Operand> open = {place.operand};
  for (std::size_t i = before; i-- > 0 && !open.empty();) {
    const Executed& e = log_[i];
    if (e.ref.rank != place.rank) continue;
    bool wrote = false;
    for_each_access(*e.ref.type, e.ref.op, [&](const Operand& written, const OperandField& field) {
      if (field.mode == Mode::read) return;
      std::vector<Operand> rest;
      for (const Operand& part : open) {
        if (!overlaps(part, written)) {
          rest.push_back(part);
          continue;
        }
        wrote = true;
        Operand left = part, right = part;
        left.bytes = written.begin > part.begin ? written.begin - part.begin : 0;
        right.begin = written.end();
        right.bytes = part.end() > written.end() ? part.end() - written.end() : 0;
        if (!left.empty()) rest.push_back(left);
        if (!right.empty()) rest.push_back(right);
      }
      open = std::move(rest);
    });
    if (wrote) writers.push_back(i);
  }
  return writers;
}

// The first of these bytes that the op wrote.
Operand Recorder::part_written_by(std::size_t writer, const Operand& bytes) const {
  Operand part = bytes;
  bool found = false;
  for_each_access(*log_[writer].ref.type, log_[writer].ref.op,
                  [&](const Operand& written, const OperandField& field) {
                    if (found || field.mode == Mode::read || !overlaps(written, bytes)) return;
                    found = true;
                    part.begin = std::max(bytes.begin, written.begin);
                    part.bytes = std::min(bytes.end(), written.end()) - part.begin;
                  });
  return part;
}

// Whether what the op left there depends on what was there.
bool Recorder::updates(std::size_t writer, const Place& place) const {
  bool found = false;
  for_each_access(*log_[writer].ref.type, log_[writer].ref.op,
                  [&](const Operand& written, const OperandField& field) {
                    found = found || (field.mode == Mode::update && overlaps(written, place.operand));
                  });
  return found;
}

// The last reduce-scatter of these bytes on their rank; 0 if there was none.
std::size_t Recorder::last_reduction(const Place& place) const {
  for (std::size_t i = log_.size(); i-- > 0;) {
    const OpRef& ref = log_[i].ref;
    if (ref.rank == place.rank && ref.type == &op_type<ReduceScatter>() &&
        overlaps(collective_ranges(*ref.type, ref.op).whole, place.operand))
      return i;
  }
  return 0;
}

// Adds what each rank had in the place when it was reduced: its last writer, and while that only changed what
// was there, the one before. Ranks to which no gradient was added come first, as there is not room for all.
void Recorder::add_reduced_ranks(std::vector<std::size_t>& writers, const Place& place) const {
  std::vector<std::vector<std::size_t>> chains;
  for (int rank = 0; rank < world_.ranks(); ++rank) {
    const Place there{rank, place.operand};
    std::vector<std::size_t>& chain = chains.emplace_back();
    for (std::size_t reader = last_reduction(there); reader > 0;) {
      const std::vector<std::size_t> before = last_writers(there, reader);
      if (before.empty()) break;
      chain.push_back(before.front());
      reader = updates(before.front(), there) ? before.front() : 0;
    }
  }
  std::stable_partition(chains.begin(), chains.end(), [&](const std::vector<std::size_t>& chain) {
    return !chain.empty() && !log_[chain.back()].ref.type->accumulates;
  });
  for (const std::vector<std::size_t>& chain : chains)
    if (writers.size() + chain.size() <= kMostLines)
      writers.insert(writers.end(), chain.begin(), chain.end());
  std::sort(writers.begin(), writers.end(), std::greater<>());
}

// Where what it wrote comes from, up to the main params. What a gather leaves comes from the shard of the
// rank that owns it.
std::vector<Recorder::Place> Recorder::sources(const Executed& writer, const Place& written) const {
  std::vector<Place> places;
  if (is_collective(writer.ref)) {
    const CollectiveRanges ranges = collective_ranges(*writer.ref.type, writer.ref.op);
    if (writer.ref.type != &op_type<AllGather>() || ranges.own.bytes == 0) return places;
    const uint32_t begin = std::max(written.operand.begin, ranges.whole.begin);
    Place source{static_cast<int>((begin - ranges.whole.begin) / ranges.own.bytes), ranges.own};
    source.operand.begin = ranges.whole.begin + static_cast<uint32_t>(source.rank) * ranges.own.bytes;
    if (source.rank != writer.ref.rank) places.push_back(source);
    return places;
  }
  for_each_access(*writer.ref.type, writer.ref.op, [&](const Operand& read, const OperandField& field) {
    const bool follows = field.content == Content::gathered || field.content == Content::staged ||
                         field.content == Content::weights;
    if (field.mode == Mode::read && follows) places.push_back({writer.ref.rank, read});
  });
  return places;
}

// Whether an op of this name touched the place: a gather reads the own shard that it does not write.
bool Recorder::ran_between(std::string_view op, const Place& place, std::size_t first,
                           std::size_t last) const {
  for (std::size_t i = first + 1; i < last; ++i) {
    const OpRef& ref = log_[i].ref;
    if (ref.rank != place.rank || ref.type->name != op) continue;
    bool touched = false;
    for_each_access(*ref.type, ref.op, [&](const Operand& operand, const OperandField&) {
      touched = touched || overlaps(operand, place.operand);
    });
    if (touched) return true;
  }
  return false;
}

// The last op of the optimizer that changed main params of the rank; kNone if there is none.
std::size_t Recorder::last_step(int rank, std::size_t before) const {
  for (std::size_t i = before; i-- > 0;)
    if (log_[i].ref.rank == rank && log_[i].ref.type == &op_type<Adam>()) return i;
  return kNone;
}

// One rank exchanges nothing.
bool Recorder::alone(std::string_view op) const {
  return world_.ranks() == 1 && (op == "all_gather" || op == "reduce_scatter");
}

// Of what ought to have written between the two, the first that did not run.
std::string Recorder::missing_link(std::size_t writer, std::size_t reader, const Place& place,
                                   bool weight) const {
  const std::string writer_name = log_[writer].ref.type->name;
  const OpType& reading = *log_[reader].ref.type;
  const int rank = log_[writer].ref.rank;
  const auto need = std::find_if(needs().begin(), needs().end(), [&](const Need& n) {
    const bool reads = n.reader == reading.name ||
                       (n.reader == kWeightReader && weight && reading.reads_weights) ||
                       (n.reader == kFirstSum && !weight && reading.accumulates);
    return reads && (n.after.empty() || holds(n.after, writer_name));
  });
  if (need == needs().end()) return "";
  if (!holds(need->writers, writer_name)) {
    for (const std::string_view name : need->writers)
      if (!alone(name) && !ran_between(name, place, writer, reader))
        return std::string(name) + " on rank " + std::to_string(rank) + ", between " + writer_name + " and " +
               reading.name;
    return "";
  }
  const std::size_t step = last_step(rank, reader);
  if (!weight || step == kNone || writer > step) return "";
  return writer_name + " on rank " + std::to_string(rank) + ", between adam of iteration " +
         std::to_string(log_[step].iteration) + " and " + reading.name;
}

Writer Recorder::describe(const Executed& e, const Place& written,
                          const std::function<std::string(uint16_t)>& param_name) const {
  Writer line;
  line.iteration = e.iteration;
  line.rank = e.ref.rank;
  line.stream = world_.stream_name(e.ref.rank, e.ref.stream);
  line.op = e.ref.type->name;
  line.graph = e.ref.graph;
  const auto name = [&](const Operand& operand, const OperandField& field) {
    if (field.plane != Plane::none && operand.tag != 0) return param_name(operand.tag);
    return std::string(world_.buffer_name(e.ref.rank, operand.buffer)) + " " + range_text(operand);
  };
  std::string target, source;
  for_each_access(*e.ref.type, e.ref.op, [&](const Operand& operand, const OperandField& field) {
    if (field.mode != Mode::read && target.empty() && overlaps(operand, written.operand))
      target = name(operand, field);
    if (field.mode == Mode::read && source.empty() && !is_collective(e.ref)) source = name(operand, field);
  });
  line.what = source.empty() ? target : target + " <- " + source;
  return line;
}

Story Recorder::tell_reduced(std::size_t reduction, const Place& place,
                             const std::function<std::string(uint16_t)>& param_name) const {
  Story story;
  std::vector<std::size_t> writers = {reduction};
  add_reduced_ranks(writers, place);
  for (const std::size_t w : writers)
    story.last_writers.push_back(describe(log_[w], {log_[w].ref.rank, place.operand}, param_name));
  return story;
}

Story Recorder::tell(const Violation& violation,
                     const std::function<std::string(uint16_t)>& param_name) const {
  Story story;
  if (violation.operand.empty() || log_.empty()) return story;
  const bool weight = violation.failure == FailureClass::zeroed_weights ||
                      violation.failure == FailureClass::stale_weights ||
                      violation.failure == FailureClass::wrong_weights;
  Place place{violation.rank, violation.operand};
  std::size_t reader = log_.size() - 1;
  while (story.last_writers.size() < kMostLines) {
    const std::vector<std::size_t> writers = last_writers(place, reader);
    if (writers.empty()) break;
    for (const std::size_t w : writers)
      if (story.last_writers.size() < kMostLines)
        story.last_writers.push_back(describe(log_[w], place, param_name));
    // What was written longest ago is what an op has failed to renew.
    const std::size_t oldest = writers.back();
    const Place oldest_part{place.rank, part_written_by(oldest, place.operand)};
    if (story.missing.empty()) story.missing = missing_link(oldest, reader, oldest_part, weight);
    if (log_[oldest].ref.type == &op_type<ReduceScatter>()) return tell_reduced(oldest, place, param_name);
    if (!weight) break;  // another gradient's story ends with who wrote it
    const std::vector<Place> from = sources(log_[oldest], place);
    if (from.empty()) break;
    place = from.front();
    reader = oldest;
  }
  return story;
}

}  // namespace gatherfuzz
