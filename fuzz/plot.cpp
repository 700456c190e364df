#include "fuzz/plot.h"

#include <algorithm>
#include <cmath>

#include "fuzz/output.h"

namespace gatherfuzz {

namespace {

constexpr double kWidth = 720, kHeight = 400;
constexpr double kLeft = 60, kRight = 20, kTop = 40, kBottom = 44;  // around the axes
constexpr int kTicks = 5;

constexpr const char* kHead = R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" role="img">
<title>Training loss by step</title>
<style>
svg { background: #fff; font: 12px sans-serif; }
text { fill: #333; }
.grid { stroke: #ddd; }
.line { stroke: #0b62c4; stroke-width: 1.5; fill: none; }
.beside { stroke: #f0a030; stroke-width: 5; fill: none; opacity: 0.6; }
@media (prefers-color-scheme: dark) {
  svg { background: #16181c; }
  text { fill: #ccc; }
  .grid { stroke: #333; }
  .line { stroke: #6cb0ff; }
}
</style>
)";

std::string number(double value) {
  return fixed_text(value, 1);
}

// What is drawn: steps and losses, and where they come to on the picture.
struct Axes {
  double first_step, last_step, least, most;

  double x(double step) const {
    return kLeft + (step - first_step) / (last_step - first_step) * (kWidth - kLeft - kRight);
  }
  double y(double loss) const {
    return kHeight - kBottom - (loss - least) / (most - least) * (kHeight - kTop - kBottom);
  }
};

Axes axes_of(const PlotLine& line, const PlotLine& beside, int first_step) {
  double least = INFINITY, most = -INFINITY;
  for (const PlotLine* l : {&line, &beside}) {
    for (const float value : l->values) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, static_cast<double>(value));
      most = std::max(most, static_cast<double>(value));
    }
  }
  if (!(least < most)) {  // nothing, or one value alone
    const double middle = std::isfinite(least) ? least : 0.0;
    least = middle - 0.5;
    most = middle + 0.5;
  }
  const auto steps = static_cast<double>(std::max(line.values.size(), beside.values.size()));
  return {static_cast<double>(first_step), first_step + std::max(steps - 1, 1.0), least, most};
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" + text +
         "</text>\n";
}

std::string segment(const char* kind, double x1, double y1, double x2, double y2) {
  return std::string("<path class=\"") + kind + "\" d=\"M" + number(x1) + "," + number(y1) + "L" +
         number(x2) + "," + number(y2) + "\"/>\n";
}

std::string grid(const Axes& axes) {
  std::string svg;
  for (int i = 0; i <= kTicks; ++i) {
    const double loss = axes.least + (axes.most - axes.least) * i / kTicks;
    svg += segment("grid", kLeft, axes.y(loss), kWidth - kRight, axes.y(loss));
    svg += text_at(kLeft - 6, axes.y(loss) + 4, "end", fixed_text(loss, 3));
    const double step = std::round(axes.first_step + (axes.last_step - axes.first_step) * i / kTicks);
    svg += text_at(axes.x(step), kHeight - kBottom + 18, "middle", fixed_text(step, 0));
  }
  return svg + text_at(kWidth / 2, kHeight - 8, "middle", "step") + text_at(8, 20, "start", "loss, nats");
}

std::string curve(const char* kind, const PlotLine& line, const Axes& axes) {
  std::string path;
  bool on = false;
  for (std::size_t i = 0; i < line.values.size(); ++i) {
    const float value = line.values[i];
    if (std::isfinite(value))
      path += (on ? "L" : "M") + number(axes.x(axes.first_step + static_cast<double>(i))) + "," +
              number(axes.y(value));
    on = std::isfinite(value);
  }
  return path.empty() ? "" : std::string("<path class=\"") + kind + "\" d=\"" + path + "\"/>\n";
}

std::string legend(const char* kind, const PlotLine& line, double x) {
  if (line.values.empty()) return "";
  return segment(kind, x, 16, x + 24, 16) + text_at(x + 30, 20, "start", line.name);
}

}  // namespace

std::string loss_plot(const PlotLine& line, const PlotLine& beside, int first_step) {
  const Axes axes = axes_of(line, beside, first_step);
  return kHead + grid(axes) + curve("beside", beside, axes) + curve("line", line, axes) +
         legend("line", line, kWidth - 240) + legend("beside", beside, kWidth - 140) + "</svg>\n";
}

}  // namespace gatherfuzz
