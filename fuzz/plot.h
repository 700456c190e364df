// A loss curve as a picture: one SVG file that needs nothing else, in light and dark.
#pragma once

#include <span>
#include <string>

namespace gatherfuzz {

struct PlotLine {
  std::string name;
  std::span<const float> values;  // by step; may be empty
};

// `beside` is drawn below `line`, wider, so that it shows where both are equal. Values that are not finite
// leave a gap.
std::string loss_plot(const PlotLine& line, const PlotLine& beside, int first_step);

}  // namespace gatherfuzz
