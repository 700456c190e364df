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

std::string CampaignCounts::shapes_text() const {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const double share = programs > 0 ? static_cast<double>(shapes[i]) / static_cast<double>(programs) : 0.0;
    text += (i == 0 ? "shapes: " : ", ") + std::string(interesting_shapes()[i].name) + " " +
            fixed_text(100.0 * share, 1) + "%";
  }
  return text;
}

}  // namespace gatherfuzz
