#include "fuzz/campaign_report.h"

#include <sstream>

#include "fuzz/output.h"
#include "fuzz/plot.h"
#include "fuzz/version.h"
#include "properties/shapes.h"

namespace gatherfuzz {

namespace {

constexpr const char* kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>GatherFuzz campaign</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.45 sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em; }
table { border-collapse: collapse; }
td, th { border: 1px solid #8884; padding: 0.2em 0.8em; text-align: left; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { border: 1px solid #8884; overflow-x: auto; padding: 0.8em; }
svg { max-width: 45em; }
</style>
</head>
<body>
)";

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string row(std::string_view name, const std::string& value, bool number = false) {
  return "<tr><th>" + escaped(name) + "</th><td" + (number ? " class=\"number\"" : "") + ">" +
         escaped(value) + "</td></tr>\n";
}

std::string count_row(std::string_view name, uint64_t count) {
  return row(name, with_commas(count), true);
}

std::string table(const std::string& title, const std::string& rows) {
  return "<h2>" + title + "</h2>\n<table>\n" + rows + "</table>\n";
}

std::string head(const CampaignOptions& options, const CampaignFigures& figures) {
  std::string runtimes, set;
  for (const RuntimeKind runtime : options.runtimes)
    runtimes += (runtimes.empty() ? "" : ", ") + std::string(name_of(runtime));
  for (const auto& [name, value] : options.set) set += (set.empty() ? "" : ", ") + name + "=" + value;
  return "<h1>GatherFuzz campaign</h1>\n<table>\n" + row("version", version_text()) +
         row("engine", std::string(name_of(options.engine))) + row("seed", options.seed.text) +
         row("runtimes", runtimes) + row("fault", options.fault ? fault_text(options) : "none planted") +
         row("flags set", set.empty() ? "none" : set) + row("jobs", std::to_string(options.jobs)) +
         row("folder", options.out) + row("duration", fixed_text(figures.seconds, 1) + " s") + "</table>\n";
}

std::string counts(const CampaignFigures& figures) {
  const CampaignCounts& c = figures.counts;
  std::string rows = count_row("programs", c.programs);
  for (std::size_t i = 0; i < c.verdicts.size(); ++i)
    rows += count_row("verdict " + std::string(kVerdictNames[i]), c.verdicts[i]);
  for (std::size_t i = 0; i < c.runs.size(); ++i)
    rows += count_row("runs on " + std::string(kRuntimeNames[i]), c.runs[i]);
  rows += count_row("runs beside a twin", c.twins) + count_row("kinds of failures", figures.kinds) +
          count_row("kinds known before", figures.known);
  if (figures.seconds > 0.0)
    rows +=
        row("programs per second", fixed_text(static_cast<double>(c.programs) / figures.seconds, 1), true);
  return table("Counts", rows);
}

std::string coverage(const CampaignFigures& figures, const CampaignHistory& history) {
  std::string rows = count_row("host states reached", figures.states) +
                     count_row("programs kept for new states", figures.kept) +
                     row("action pairs reached",
                         with_commas(figures.counts.pairs.size()) + " of " +
                             with_commas(number_of_legal_action_pairs()) + " legal ones",
                         true);
  std::vector<PlotPoint> states, programs;
  for (const CampaignPoint& point : history.points) {
    states.push_back({point.seconds, static_cast<double>(point.states)});
    programs.push_back({point.seconds, static_cast<double>(point.programs)});
  }
  return table("Coverage", rows) + count_plot("Host states over time", "host states", std::move(states)) +
         count_plot("Programs over time", "programs", std::move(programs));
}

std::string shapes(const CampaignCounts& counts) {
  std::string rows;
  for (std::size_t i = 0; i < counts.shapes.size(); ++i)
    rows += row(interesting_shapes()[i].name, fixed_text(100.0 * counts.share_of_shape(i), 1) + "%", true);
  return table("Shapes, of all programs", rows);
}

// The block's lines that are commands: "Keep: ...", "Reproduce: ...".
std::string commands_of(const std::string& block) {
  std::string rows;
  std::istringstream lines(block);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t command = line.find(" gatherfuzz ");
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || line.find_first_not_of(' ', colon + 1) != command + 1) continue;
    rows += "<tr><th>" + escaped(line.substr(0, colon)) + "</th><td><code>" +
            escaped(line.substr(command + 1)) + "</code></td></tr>\n";
  }
  return rows;
}

std::string failure_section(const CampaignOptions& options, const LoggedFailure& failure) {
  std::string link = failure.file;  // from where this page lies
  if (link.starts_with(options.out + "/")) link.erase(0, options.out.size() + 1);
  return "<h3>" + escaped(failure.failure_class) + " " + escaped(failure.signature) + "</h3>\n<table>\n" +
         row("runtime", failure.runtime) + count_row("program", failure.program) +
         row("found after", fixed_text(failure.seconds, 1) + " s") +
         (failure.known ? row("known", "since an earlier campaign") : "") +
         "<tr><th>file</th><td><a href=\"" + escaped(link) + "\">" + escaped(failure.file) +
         "</a></td></tr>\n" + commands_of(failure.block) + "</table>\n<pre>" + escaped(failure.block) +
         "</pre>\n";
}

}  // namespace

std::string campaign_report(const CampaignOptions& options, const CampaignFigures& figures,
                            const CampaignHistory& history) {
  std::string page = kHead + head(options, figures) + "<h2>Failures</h2>\n";
  if (history.failures.empty()) page += "<p>None.</p>\n";
  for (const LoggedFailure& failure : history.failures) page += failure_section(options, failure);
  return page + counts(figures) + coverage(figures, history) + shapes(figures.counts) + "</body>\n</html>\n";
}

}  // namespace gatherfuzz
