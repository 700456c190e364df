#include "properties/host_monitor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "properties/reference_settings.h"
#include "reference/bounds.h"

namespace gatherfuzz {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

bool all_zero(const std::byte* bytes, std::size_t n) {
  return n == 0 || (bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, n - 1) == 0);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Of a vector, L2.
double length(const std::vector<float>& values) {
  double squares = 0.0;
  for (const float value : values) squares += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(squares);
}

// A sum of hashes that know their place, none of which waits for another.
uint64_t hash_bytes(const std::byte* bytes, std::size_t n) {
  uint64_t hash = mix("bytes"_term, n);
  for (std::size_t i = 0; i < n; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min(sizeof word, n - i));
    hash += mix(word, i);
  }
  return hash;
}

}  // namespace

HostMonitor::HostMonitor(World& world, const Program& program, const Plan& plan, Judging judging,
                         const Dataset& dataset, const TrainingState* start)
    : Monitor(world, program, plan, judging),
      dataset_(dataset),
      start_(start),
      shape_(reference_shape(program.flags)),
      params_(reference::param_shapes(shape_)),
      settings_(reference_settings(program.flags)),
      lr_schedule_(reference_lr_schedule(program.flags)),
      model_(shape_, settings_.precision, settings_.scale_rounding, reference::loss_reduction(settings_)),
      local_(static_cast<std::size_t>(world.ranks())),
      shares_(plan.steps.size()) {}

// Version 0 is what the run starts from, or follows from the seed alone.
const HostMonitor::Version& HostMonitor::version(int v) {
  if (versions_.empty()) {
    Version first;
    if (start_ != nullptr) {
      for (const ParamState& param : start_->params) {
        first.main.push_back(param.main);
        first.exp_avg.push_back(param.exp_avg);
        first.exp_avg_sq.push_back(param.exp_avg_sq);
      }
      first.adam_steps = start_->step;
    } else {
      first.main = initial_main_params(program_.flags);
      for (const std::vector<float>& values : first.main) first.exp_avg.emplace_back(values.size(), 0.0f);
      first.exp_avg_sq = first.exp_avg;
    }
    versions_.emplace(0, std::move(first));
  }
  return versions_.at(v);
}

// Keeps what may still be asked for: versions that ranks are at, one before for telling stale from wrong, and
// the saved.
void HostMonitor::prune() {
  const auto saved = [&](int version) {
    return std::any_of(saved_transitions_.begin(), saved_transitions_.end(),
                       [&](const auto& slot) { return slot.second == version; });
  };
  for (auto v = versions_.begin(); v != versions_.end();)
    v = v->first + 3 < latest_ && !saved(v->first) ? versions_.erase(v) : std::next(v);
}

std::vector<float> HostMonitor::staged(const std::vector<float>& main) const {
  std::vector<float> values = main;
  if (settings_.precision != reference::Precision::fp32)
    for (float& v : values) v = reference::round_to_bf16(v);
  return values;
}

bool HostMonitor::stored_as_planes(uint32_t param) const {
  return model_is_mxfp8_gather(program_.flags) && parts().params[param].mxfp8;
}

// The planes of a weight that is stored whole are those of where it is used.
HostMonitor::WeightBytes HostMonitor::expected_bytes(const std::vector<float>& values,
                                                     const reference::PreparedWeight<float>& weight,
                                                     uint32_t param) const {
  WeightBytes bytes;
  auto plane = [&bytes](Plane p) -> std::vector<std::byte>& { return bytes.planes[static_cast<int>(p)]; };
  plane(Plane::rowwise) = bytes_of(weight.rowwise.codes);
  plane(Plane::rowwise_scale) = bytes_of(weight.rowwise.scales);
  plane(Plane::columnwise) = bytes_of(weight.columnwise.codes);
  plane(Plane::columnwise_scale) = bytes_of(weight.columnwise.scales);
  if (settings_.precision == reference::Precision::fp32) {
    plane(Plane::whole) = bytes_of(values);
  } else if (!stored_as_planes(param)) {
    std::vector<uint16_t> halves;  // a bf16 is the upper half of its float
    for (const float value : values)
      halves.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    plane(Plane::whole) = bytes_of(halves);
  }
  return bytes;
}

void HostMonitor::check_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param) {
  const int v = rank(op.rank).transitions;
  if (bytes_version_ != v) {
    bytes_version_ = v;
    bytes_.assign(parts().params.size(), {});
  }
  std::vector<std::byte>& expected = bytes_[param].planes[static_cast<int>(plane)];
  if (expected.empty())
    bytes_[param] = expected_bytes(staged(version(v).main[param]), prepared(v)[param], param);
  const std::byte* found = memory(op.rank).data(operand);
  auto equals = [&](const std::vector<std::byte>& bytes) {
    return operand.bytes == bytes.size() && std::memcmp(found, bytes.data(), bytes.size()) == 0;
  };
  if (equals(expected)) return;
  use_share(&StepShares::weights, op.rank, kInfinity);
  FoundWeight holds{FailureClass::wrong_weights, 0, false, 0, operand.bytes};
  const bool scale = plane == Plane::rowwise_scale || plane == Plane::columnwise_scale;
  if (!scale && all_zero(found, operand.bytes) && !all_zero(expected.data(), expected.size())) {
    holds.failure = FailureClass::zeroed_weights;
    holds.quantized = has_scales_of_zeros(op.rank, scales_of(op, operand, plane), plane, param);
    return report_weight(op, operand, plane, param, v, holds);
  }
  for (const auto& [older, state] : versions_) {
    if (older >= v) continue;
    const std::vector<float> values = staged(state.main[param]);
    const auto weight = model_.prepare(static_cast<int>(param), values);
    if (!equals(expected_bytes(values, weight, param).planes[static_cast<int>(plane)])) continue;
    holds.failure = FailureClass::stale_weights;
    holds.version = older;
    return report_weight(op, operand, plane, param, v, holds);
  }
  // From the first to the last byte that is not as expected.
  if (operand.bytes == expected.size()) {
    while (found[holds.first] == expected[holds.first]) ++holds.first;
    while (found[holds.end - 1] == expected[holds.end - 1]) --holds.end;
  }
  report_weight(op, operand, plane, param, v, holds);
}

// Whether scales are those that quantizing zeros gives.
bool HostMonitor::has_scales_of_zeros(int r, const Operand& scales, Plane plane, uint32_t param) {
  if (scales.empty()) return false;
  const std::vector<float> zeros(version(latest_).main[param].size(), 0.0f);
  const auto weight = model_.prepare(static_cast<int>(param), zeros);
  const auto& quantized = plane == Plane::rowwise ? weight.rowwise : weight.columnwise;
  const std::vector<std::byte> bytes = bytes_of(quantized.scales);
  return scales.bytes == bytes.size() && std::memcmp(memory(r).data(scales), bytes.data(), bytes.size()) == 0;
}

void HostMonitor::check_clean(const OpRef& op, const Operand& grad, uint32_t param) {
  const std::byte* bytes = memory(op.rank).data(grad);
  if (all_zero(bytes, grad.bytes)) return;
  uint32_t first = 0, end = grad.bytes;
  while (bytes[first] == std::byte{0}) ++first;
  while (bytes[end - 1] == std::byte{0}) --end;
  report_polluted(op, grad, param, first, end);
}

std::vector<float> HostMonitor::values_of(int r, const Operand& operand) {
  const float* values = memory(r).load(operand);
  std::vector<float> copy(values, values + operand.count());
  memory(r).end_op();
  return copy;
}

HostMonitor::Local& HostMonitor::local(int r) {
  Local& l = local_[static_cast<std::size_t>(r)];
  if (l.step != rank(r).step) {
    l.step = rank(r).step;
    l.gradients.assign(parts().params.size(), {});
    l.passes.assign(static_cast<std::size_t>(planned(l.step).microbatches), std::nullopt);
  }
  return l;
}

HostMonitor::Common& HostMonitor::common(int step) {
  auto [entry, fresh] = common_.try_emplace(step);
  if (fresh) {
    entry->second.reduced.resize(parts().params.size());
    entry->second.losses.resize(static_cast<std::size_t>(world_.ranks()));
    common_.erase(step - 2);
  }
  return entry->second;
}

// The rank's own gradient of a parameter is complete when every microbatch has added that of each use.
void HostMonitor::accumulated(const OpRef& op, const Operand& grad, uint32_t param, int times) {
  if (!rank(op.rank).in_step || times != planned(rank(op.rank).step).microbatches * uses(param)) return;
  std::vector<float> values = values_of(op.rank, grad);
  if (!planned(rank(op.rank).step).grad_injected(op.rank)) compare_gradient(op, param, values);
  local(op.rank).gradients[param] = std::move(values);
}

const reference::Prepared<float>& HostMonitor::prepared(int v) {
  if (prepared_version_ != v) {
    prepared_version_ = v;
    std::vector<std::vector<float>> weights;
    for (const std::vector<float>& main : version(v).main) weights.push_back(staged(main));
    prepared_ = model_.prepare(weights);
  }
  return prepared_;
}

reference::Batch HostMonitor::batch_of(int step, int r, int microbatch) const {
  const Flags& f = program_.flags;
  const auto tokens = static_cast<std::size_t>(shape_.tokens());
  reference::Batch batch{std::vector<int32_t>(tokens), std::vector<int32_t>(tokens)};
  for (int row = 0; row < f.micro_batch_size; ++row)
    dataset_.sample(r, microbatch, static_cast<int32_t>(planned(step).batch), row, f.seq_length,
                    batch.tokens.data() + row * f.seq_length, batch.targets.data() + row * f.seq_length);
  return batch;
}

int HostMonitor::tokens_of(int step) {
  std::optional<int>& tokens = common(step).tokens;
  if (tokens) return *tokens;
  std::ptrdiff_t count = 0;
  for (int r = 0; r < world_.ranks(); ++r)
    for (int m = 0; m < planned(step).microbatches; ++m) {
      const std::vector<int32_t> targets = batch_of(step, r, m).targets;
      count += std::count_if(targets.begin(), targets.end(),
                             [](int32_t target) { return target != reference::kMaskedTarget; });
    }
  tokens = static_cast<int>(count);
  return *tokens;
}

const HostMonitor::Pass& HostMonitor::reference_pass(int r, int microbatch) {
  std::optional<Pass>& pass = local(r).passes[static_cast<std::size_t>(microbatch)];
  if (pass) return *pass;
  const int step = rank(r).step;
  const reference::Batch batch = batch_of(step, r, microbatch);
  const float coefficient =
      reference::gradient_coefficient(settings_, static_cast<std::size_t>(planned(step).microbatches));
  pass = model_.forward_backward(prepared(rank(r).transitions), batch.tokens, batch.targets, coefficient);
  return *pass;
}

bool HostMonitor::use_share(double StepShares::*hop, int r, double share) {
  const int step = rank(r).step;
  if (step >= 0) {
    double& worst = shares_[static_cast<std::size_t>(step)].*hop;
    worst = std::max(worst, share);
  }
  if (std::isfinite(share)) worst_share_ = std::max(worst_share_, share);
  return share <= 1.0;  // false for NaN
}

// Hop 2: the local gradient against the reference's, from the same weights and batch. Those of two uses may
// cancel, but what honest implementations differ by does not: the bound is a share of both sizes together.
void HostMonitor::compare_gradient(const OpRef& op, uint32_t param, const std::vector<float>& found) {
  std::vector<float> expected(found.size(), 0.0f);
  std::vector<std::vector<float>> of_use(static_cast<std::size_t>(uses(param)), expected);
  float logits_rms = 0.0f;
  for (int m = 0; m < planned(rank(op.rank).step).microbatches; ++m) {
    const Pass& pass = reference_pass(op.rank, m);
    const auto summands = pass.summands(param);
    for (std::size_t use = 0; use < summands.size(); ++use) {
      reference::accumulate(settings_.grad_precision, expected, *summands[use]);
      reference::accumulate(settings_.grad_precision, of_use[use], *summands[use]);
    }
    logits_rms = std::max(logits_rms, pass.logits_rms);
  }
  if (same_bits(found, expected)) return;
  double size = 0.0;
  for (const std::vector<float>& values : of_use) size += length(values);
  for (std::size_t i = 0; i < found.size(); ++i) expected[i] = found[i] - expected[i];
  const double share = length(expected) / size;
  const double bound = reference::hop2_bounds(shape_, settings_.precision, logits_rms).gradient_relative;
  if (use_share(&StepShares::gradient, op.rank, share / bound)) return;
  report(FailureClass::wrong_loss, op.rank, op.type->name, param_name(param),
         "the gradient of " + param_name(param) + " differs from the reference's by " +
             std::to_string(share) + " of its size; the bound is " + std::to_string(bound));
}

// Hop 4.
void HostMonitor::check_norm(const OpRef& op, const Operand& operand) {
  const RankState& state = rank(op.rank);
  const float found = *memory(op.rank).in<float>(operand);
  if (!state.in_step) return;
  common(state.step).norm = found;
  if (injected(state.step)) return;
  std::vector<std::vector<float>> grads;
  const std::optional<double>& scale = program_.flags.loss_scale;
  for (uint32_t p = 0; p < parts().params.size(); ++p) {
    const std::vector<float>* g = reduced(state.step, p);
    if (g == nullptr) return;  // reported where the gradient was consumed
    grads.push_back(*g);
    if (scale) reference::unscale(grads.back(), static_cast<float>(*scale));
  }
  const reference::GlobalNorm expected = reference::global_norm(grads);
  if (found == expected.value) return;
  const double bound = std::max({static_cast<double>(expected.upper) - expected.value,
                                 static_cast<double>(expected.value) - expected.lower, 1e-30});
  if (use_share(&StepShares::norm, op.rank, std::abs(static_cast<double>(found) - expected.value) / bound))
    return;
  report(FailureClass::wrong_loss, op.rank, op.type->name, "grad norm",
         "the grad norm is " + std::to_string(found) + "; expected " + std::to_string(expected.value));
}

// Hop 5: exact bits.
void HostMonitor::check_state(int r, FailureClass failure) {
  RankState& state = rank(r);
  if (state.step_ops == nullptr) return;
  const Version& v = version(state.transitions);
  for (const Shard& shard : state.step_ops->parts().optimizer->shards()) {
    const std::pair<const View<float>*, const std::vector<std::vector<float>>*> kinds[] = {
        {&shard.main, &v.main}, {&shard.exp_avg, &v.exp_avg}, {&shard.exp_avg_sq, &v.exp_avg_sq}};
    for (const auto& [view, expected] : kinds) {
      const float* found = memory(r).in<float>(*view);
      for (const ShardPiece& piece : shard.pieces) {
        if (std::memcmp(found + piece.in_shard, (*expected)[piece.param].data() + piece.in_param,
                        piece.count * sizeof(float)) == 0)
          continue;
        report(failure, r, "adam", param_name(piece.param),
               "main params or moments of " + param_name(piece.param) + " are not those of version " +
                   std::to_string(state.transitions));
        return;
      }
    }
  }
}

void HostMonitor::check_losses(int r) {
  const RankState& state = rank(r);
  const PlannedStep& step = planned(state.step);
  if (step.grad_injected(r)) return;
  const bool per_token = settings_.calculate_per_token_loss;
  float sum = 0.0f, logits_rms = 0.0f;
  for (int m = 0; m < step.microbatches; ++m) {
    const Pass& pass = reference_pass(r, m);
    sum += pass.loss;
    logits_rms = std::max(logits_rms, pass.logits_rms);
    const float found = *memory(r).in<float>(state.step_ops->parts().model->loss(m));
    if (found == pass.loss) continue;
    const double mean_bound = reference::hop2_bounds(shape_, settings_.precision, pass.logits_rms).loss;
    const double bound = per_token ? pass.tokens * mean_bound : mean_bound;
    if (!use_share(&StepShares::loss, r, std::abs(static_cast<double>(found) - pass.loss) / bound))
      report(FailureClass::wrong_loss, r, "cross_entropy", "loss",
             "the loss is " + std::to_string(found) + "; the reference's is " + std::to_string(pass.loss));
  }
  Common& c = common(state.step);
  c.losses[static_cast<std::size_t>(r)] = per_token ? sum : sum / static_cast<float>(step.microbatches);
  const double parts = per_token ? tokens_of(state.step) : static_cast<double>(c.losses.size());
  double mean = 0.0;
  for (const std::optional<float>& loss : c.losses) {
    if (!loss) return;  // the last rank to end the step compares the mean
    mean += *loss / parts;
  }
  const float found = *memory(r).in<float>(state.step_ops->reduced_loss());
  const double rounding = std::abs(mean) * (world_.ranks() + step.microbatches + 2) * 0x1p-24;
  const double bound = reference::hop2_bounds(shape_, settings_.precision, logits_rms).loss + rounding;
  if (!use_share(&StepShares::loss, r, std::abs(found - mean) / bound))
    report(FailureClass::wrong_loss, r, "average_loss", "reduced loss",
           "the reduced loss is " + std::to_string(found) + "; expected " + std::to_string(mean));
}

uint64_t HostMonitor::fingerprint(int r, const Operand& operand) {
  return hash_bytes(memory(r).data(operand), operand.bytes);
}

std::optional<float> HostMonitor::number(int r, const Operand& operand) {
  return *memory(r).in<float>(operand);
}

// A sum of hashes of elements, each with its place, so that it does not depend on how shards are cut.
uint64_t HostMonitor::main_fingerprint(int r) {
  uint64_t hash = 0;
  for (const Shard& shard : rank(r).step_ops->parts().optimizer->shards()) {
    const float* main = memory(r).in<float>(shard.main);
    for (const ShardPiece& piece : shard.pieces) {
      const uint64_t first = (uint64_t{piece.param} << 32) + piece.in_param;
      for (uint32_t i = 0; i < piece.count; ++i)
        hash += mix(std::bit_cast<uint32_t>(main[piece.in_shard + i]), first + i);
    }
  }
  return hash;
}

bool HostMonitor::is_zero_gradient(int r, const Operand& operand) {
  return all_zero(memory(r).data(operand), operand.bytes);
}

void HostMonitor::take_step(int step) {
  Version next = version(latest_);
  const float coefficient = reference::clip_coefficient(common(step).norm, settings_.clip_grad);
  const double lr = reference::learning_rate(lr_schedule_, next.adam_steps++);
  for (uint32_t p = 0; p < next.main.size(); ++p) {
    const std::vector<float>* g = reduced(step, p);
    if (g == nullptr) continue;  // reported where the gradient was consumed
    std::vector<float> grad = *g;
    reference::unscale(grad, settings_.loss_scale);
    reference::adam(reference::settings_for(params_[p], settings_.adam),
                    {next.main[p], next.exp_avg[p], next.exp_avg_sq[p]}, grad, coefficient,
                    static_cast<float>(lr), next.adam_steps);
  }
  versions_.emplace(++latest_, std::move(next));
  prune();
}

void HostMonitor::restore(int to) {
  Version restored = version(to);
  versions_.emplace(++latest_, std::move(restored));
  prune();
}

}  // namespace gatherfuzz
