#include "fuzz/plot.h"

#include <algorithm>
#include <cmath>

#include "fuzz/output.h"

namespace gatherfuzz {

namespace {

constexpr double kWidth = 720, kHeight = 400;
constexpr double kLeft = 60, kRight = 20, kTop = 40, kBottom = 44;  // around the axes
constexpr int kTicks = 5;

constexpr const char* kHead = R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" role="img">)";
constexpr const char* kStyle = R"(
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

// What a picture says beside its curves.
struct Words {
  std::string title, x, y;
  int y_digits;  // behind the point
};

struct Curve {
  std::string name;
  std::vector<PlotPoint> points;  // in order; one that is not finite leaves a gap
};

// What is drawn, and where it comes to on the picture.
struct Axes {
  double first, last, least, most;  // of x, of y

  double x(double at) const { return kLeft + (at - first) / (last - first) * (kWidth - kLeft - kRight); }
  double y(double at) const {
    return kHeight - kBottom - (at - least) / (most - least) * (kHeight - kTop - kBottom);
  }
};

Axes axes_of(const Curve& line, const Curve& beside) {
  double first = INFINITY, last = -INFINITY, least = INFINITY, most = -INFINITY;
  for (const Curve* curve : {&line, &beside}) {
    for (const PlotPoint& point : curve->points) {
      first = std::min(first, point.x);
      last = std::max(last, point.x);
      if (!std::isfinite(point.y)) continue;
      least = std::min(least, point.y);
      most = std::max(most, point.y);
    }
  }
  if (!(least < most)) {  // nothing, or one value alone
    const double middle = std::isfinite(least) ? least : 0.0;
    least = middle - 0.5;
    most = middle + 0.5;
  }
  if (!std::isfinite(first)) first = last = 0.0;
  return {first, std::max(last, first + 1.0), least, most};
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\">" + text +
         "</text>\n";
}

std::string segment(const char* kind, double x1, double y1, double x2, double y2) {
  return std::string("<path class=\"") + kind + "\" d=\"M" + number(x1) + "," + number(y1) + "L" +
         number(x2) + "," + number(y2) + "\"/>\n";
}

std::string grid(const Axes& axes, const Words& words) {
  std::string svg;
  for (int i = 0; i <= kTicks; ++i) {
    const double y = axes.least + (axes.most - axes.least) * i / kTicks;
    svg += segment("grid", kLeft, axes.y(y), kWidth - kRight, axes.y(y));
    svg += text_at(kLeft - 6, axes.y(y) + 4, "end", fixed_text(y, words.y_digits));
    const double x = std::round(axes.first + (axes.last - axes.first) * i / kTicks);
    svg += text_at(axes.x(x), kHeight - kBottom + 18, "middle", fixed_text(x, 0));
  }
  return svg + text_at(kWidth / 2, kHeight - 8, "middle", words.x) + text_at(8, 20, "start", words.y);
}

std::string drawn(const char* kind, const Curve& curve, const Axes& axes) {
  std::string path;
  bool on = false;
  for (const PlotPoint& point : curve.points) {
    if (std::isfinite(point.y))
      path += (on ? "L" : "M") + number(axes.x(point.x)) + "," + number(axes.y(point.y));
    on = std::isfinite(point.y);
  }
  return path.empty() ? "" : std::string("<path class=\"") + kind + "\" d=\"" + path + "\"/>\n";
}

std::string legend(const char* kind, const Curve& curve, double x) {
  if (curve.points.empty() || curve.name.empty()) return "";
  return segment(kind, x, 16, x + 24, 16) + text_at(x + 30, 20, "start", curve.name);
}

std::string plot(const Words& words, const Curve& line, const Curve& beside) {
  const Axes axes = axes_of(line, beside);
  return kHead + ("\n<title>" + words.title + "</title>") + kStyle + grid(axes, words) +
         drawn("beside", beside, axes) + drawn("line", line, axes) + legend("line", line, kWidth - 240) +
         legend("beside", beside, kWidth - 140) + "</svg>\n";
}

Curve by_step(const PlotLine& line, int first_step) {
  Curve curve{line.name, {}};
  for (std::size_t i = 0; i < line.values.size(); ++i)
    curve.points.push_back({first_step + static_cast<double>(i), static_cast<double>(line.values[i])});
  return curve;
}

}  // namespace

std::string loss_plot(const PlotLine& line, const PlotLine& beside, int first_step) {
  return plot({"Training loss by step", "step", "loss, nats", 3}, by_step(line, first_step),
              by_step(beside, first_step));
}

std::string count_plot(const std::string& title, const std::string& unit, std::vector<PlotPoint> points) {
  return plot({title, "seconds", unit, 0}, {"", std::move(points)}, {});
}

}  // namespace gatherfuzz
