#include "fuzz/campaign_counts.h"

#include "fuzz/output.h"
#include "properties/shapes.h"

namespace gatherfuzz {

CampaignCounts::CampaignCounts() : shapes(interesting_shapes().size()) {}

void CampaignCounts::add(const Program& program, const std::vector<RuntimeKind>& runtimes,
                         const std::vector<Outcome>& outcomes) {
  ++programs;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    ++runs[static_cast<std::size_t>(runtimes[i])];
    twins += outcomes[i].twin ? 1 : 0;
  }
  ++verdicts[static_cast<std::size_t>(outcomes.back().verdict)];
  for (std::size_t i = 0; i < shapes.size(); ++i)
    shapes[i] += interesting_shapes()[i].holds(program.flags) ? 1 : 0;
  pairs.merge(action_pairs_of(program));
}

double CampaignCounts::share_of_shape(std::size_t i) const {
  return programs > 0 ? static_cast<double>(shapes[i]) / static_cast<double>(programs) : 0.0;
}

std::string CampaignCounts::shapes_text() const {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += (i == 0 ? "shapes: " : ", ") + std::string(interesting_shapes()[i].name) + " " +
            fixed_text(100.0 * share_of_shape(i), 1) + "%";
  }
  return text;
}

uint64_t number_of_legal_action_pairs() {
  static const uint64_t number = legal_action_pairs().size();
  return number;
}

}  // namespace gatherfuzz
