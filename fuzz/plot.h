// Curves as pictures: one SVG element that needs nothing else, in light and dark.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace gatherfuzz {

struct PlotLine {
  std::string name;
  std::span<const float> values;  // by step; may be empty
};

// `beside` is drawn below `line`, wider, so that it shows where both are equal. Values that are not finite
// leave a gap.
std::string loss_plot(const PlotLine& line, const PlotLine& beside, int first_step);

struct PlotPoint {
  double x = 0.0, y = 0.0;
};
// Counts over seconds, in order. `title` and `unit` are words without markup.
std::string count_plot(const std::string& title, const std::string& unit, std::vector<PlotPoint> points);

}  // namespace gatherfuzz
