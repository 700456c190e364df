// What monitors say of what they find: sentences, and what bytes must hold and do.
#include <cstdio>

#include "properties/monitor.h"

namespace gatherfuzz {

namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// "the forward pass of layer 0", from the op's name and the parameter's. Ops that both passes launch stand
// for themselves.
std::string pass_text(std::string_view op, const std::string& param) {
  const std::string prefix = "layers.";
  std::string text = "the forward pass";
  if (op == "quantize_on_use" || op == "hash_weight") text = op;
  if (contains(op, "backward") || contains(op, "dgrad") || contains(op, "wgrad")) text = "the backward pass";
  if (param.starts_with(prefix))
    text += " of layer " + param.substr(prefix.size(), param.find('.', prefix.size()) - prefix.size());
  return text;
}

}  // namespace

std::string number_text(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

std::string Monitor::weight_text(Plane plane, int version) const {
  std::string text = "main params, version " + std::to_string(version);
  if (program_.flags.fp8_recipe == Recipe::fp32) return text;
  text = "bf16(" + text + ")";
  return plane == Plane::whole ? text : "quantize(" + text + ")";
}

std::string Monitor::range_text(const Operand& operand, uint32_t first, uint32_t end) {
  const std::string text = "bytes [" + std::to_string(first) + ", " + std::to_string(end) + ")";
  return text + (first == 0 && end == operand.bytes ? ": all of it" : " of " + std::to_string(operand.bytes));
}

void Monitor::report_weight(const OpRef& op, const Operand& operand, Plane plane, uint32_t param, int version,
                            const FoundWeight& found) {
  constexpr const char* kPlanes[] = {
      "", "", "rowwise data, ", "rowwise scales, ", "columnwise data, ", "columnwise scales, "};
  const std::string expected = "; expected version " + std::to_string(version);
  std::string text = pass_text(op.type->name, param_name(param)) + " read weight " + param_name(param);
  std::string holds;
  if (found.failure == FailureClass::zeroed_weights) {
    text += " as all zeros";
    holds = found.quantized ? "quantize(zero)" : "zeros";
  } else if (found.failure == FailureClass::stale_weights) {
    text += " at version " + std::to_string(found.version) + expected;
    holds = weight_text(plane, found.version);
  } else {
    text += ", which holds no version of the main params" + expected;
    holds = "something else";
  }
  Violation& violation = report(found.failure, op.rank, op.type->name, param_name(param), std::move(text));
  violation.operand = operand;
  violation.expected = weight_text(plane, version);
  violation.found =
      holds + ", " + kPlanes[static_cast<std::size_t>(plane)] + range_text(operand, found.first, found.end);
}

Operand Monitor::scales_of(const OpRef& op, const Operand& weight, Plane plane) {
  const Plane wanted = plane == Plane::rowwise      ? Plane::rowwise_scale
                       : plane == Plane::columnwise ? Plane::columnwise_scale
                                                    : Plane::none;
  Operand scales;
  for_each_weight_read(*op.type, op.op, [&](const Operand& operand, const OperandField& field) {
    if (operand.tag == weight.tag && field.plane == wanted) scales = operand;
  });
  return scales;
}

void Monitor::report_polluted(const OpRef& op, const Operand& grad, uint32_t param, uint32_t first,
                              uint32_t end) {
  Violation& violation = report(FailureClass::polluted_grads, op.rank, op.type->name, param_name(param),
                                pass_text(op.type->name, param_name(param)) + " adds the first gradient of " +
                                    param_name(param) + " to memory that is not zero");
  violation.operand = grad;
  violation.expected = "zero";
  violation.found = "not zero, " + range_text(grad, first, end);
}

void Monitor::report_reduced(const OpRef& op, const ShardPiece& piece, const Operand& reduced,
                             std::string found) {
  const int microbatches = planned(rank(op.rank).step).microbatches;
  const auto counted = [](int n, const std::string& noun) {
    return std::to_string(n) + " " + noun + (n == 1 ? "" : noun.ends_with('h') ? "es" : "s");
  };
  Violation& violation = report(FailureClass::contribution, op.rank, op.type->name, param_name(piece.param),
                                "the reduced gradient of " + param_name(piece.param) +
                                    " is not what its ranks and microbatches contribute");
  const auto width = static_cast<uint32_t>(size_of(reduced.dtype));
  violation.operand = reduced;
  violation.operand.begin += piece.in_shard * width;
  violation.operand.bytes = piece.count * width;
  const bool per_token = program_.flags.calculate_per_token_loss;
  violation.expected = (world_.ranks() == 1 ? "the sum over "
                                            : std::string(per_token ? "the sum over " : "the mean over ") +
                                                  counted(world_.ranks(), "rank") + " of the sum over ") +
                       counted(microbatches, "microbatch") + (uses(piece.param) > 1 ? ", of both uses" : "") +
                       (per_token ? ", divided by the tokens of all ranks" : "");
  violation.found = std::move(found);
}

std::optional<TraceDifference> difference(const StepTrace& a, const StepTrace& b) {
  const auto differ = [](const char* what, const std::optional<float>& x, const std::optional<float>& y) {
    TraceDifference d{what, ""};
    if (x && y) d.values = number_text(*x) + " and " + number_text(*y);
    return d;
  };
  if (a.loss != b.loss) return differ("loss", a.numbers.loss, b.numbers.loss);
  if (a.norm != b.norm) return differ("grad norm", a.numbers.norm, b.numbers.norm);
  if (a.clip != b.clip) return differ("clip coefficient", a.numbers.clip, b.numbers.clip);
  return std::nullopt;
}

}  // namespace gatherfuzz
