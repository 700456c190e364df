// What a campaign leaves: OUT/log.jsonl, OUT/report.html, OUT/running.
#include "fuzz/campaign_record.h"

#include <sys/resource.h>

#include "fuzz/campaign_report.h"
#include "fuzz/run_binary_for_tests.h"
#include "fuzz/schema_for_tests.h"
#include "properties/shapes.h"

namespace gatherfuzz {

namespace {

using nlohmann::json;

const std::string kFault = "drop op=copy_main_params_to_param_buffer iteration=2+";

class CampaignRecordTest : public BinaryTest {
 protected:
  using Arguments = std::vector<std::string>;

  Arguments fuzz(const std::string& out, const Arguments& more) const {
    Arguments arguments{"fuzz", "--runtime", "symbolic", "--out", path(out)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The lines of OUT/log.jsonl, each of which must follow the schema.
  std::vector<json> log_of(const std::string& out) const {
    const json schema = json::parse(content_of(GATHERFUZZ_SOURCE_DIR "/ci/log.schema.json"));
    std::vector<json> lines;
    std::istringstream text(content_of(path(out + "/log.jsonl")));
    for (std::string line; std::getline(text, line);) {
      lines.push_back(json::parse(line, nullptr, false));
      EXPECT_FALSE(lines.back().is_discarded()) << line;
      EXPECT_EQ(schema_problem(lines.back(), schema), "") << line;
    }
    return lines;
  }

  static std::vector<json> of_kind(const std::string& kind, const std::vector<json>& lines) {
    std::vector<json> found;
    for (const json& line : lines)
      if (line.at("kind") == kind) found.push_back(line);
    return found;
  }
};

// Every tag closed in its order, text without bare markup: what is wrong, or nothing.
std::string markup_problem(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find_first_of("<>", at + 1);
    if (end == std::string::npos || page[end] != '>') return "unclosed tag: " + page.substr(at, 40);
    const std::string tag = page.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" /", 1));
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "unclosed quote: " + tag;
    if (!tag.starts_with('/')) {
      open.push_back(name);
      continue;
    }
    if (open.empty() || "/" + open.back() != tag) return "<" + tag + "> closes nothing";
    open.pop_back();
  }
  for (std::size_t at = page.find('&'); at != std::string::npos; at = page.find('&', at + 1)) {
    const std::string name = page.substr(at, page.find(';', at) - at);
    if (name != "&lt" && name != "&gt" && name != "&amp" && name != "&quot")
      return "bare " + name.substr(0, 20);
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

TEST_F(CampaignRecordTest, TheLogFollowsItsSchemaAndTellsWhatTheSummaryTells) {
  const json schema = json::parse(content_of(GATHERFUZZ_SOURCE_DIR "/ci/log.schema.json"));
  const json classes = schema["oneOf"][2]["properties"]["class"]["enum"];
  EXPECT_TRUE(std::equal(classes.begin(), classes.end(), std::begin(kFailureClassNames),
                         std::end(kFailureClassNames)));

  const Result result = run(fuzz("out", {"--time", "3", "--keep-going", "--fault", kFault, "--jobs", "2",
                                         "--set", "fp8_recipe=mxfp8", "--seed", "5"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::vector<json> log = log_of("out");
  ASSERT_GE(log.size(), 4u);
  const json &begin = log.front(), &end = log.back();
  EXPECT_EQ(begin.at("kind"), "begin");
  EXPECT_EQ(begin.at("seed"), "5");
  EXPECT_EQ(begin.at("fault"), kFault);
  EXPECT_EQ(begin.at("settings").at("set"), (json{{"fp8_recipe", "mxfp8"}}));
  EXPECT_EQ(begin.at("settings").at("time"), 3.0);
  EXPECT_FALSE(begin.at("resumed"));
  EXPECT_EQ(end.at("kind"), "end");
  EXPECT_EQ(end.at("exit_code"), 1);
  EXPECT_EQ(end.at("shapes").size(), interesting_shapes().size());
  EXPECT_GE(of_kind("progress", log).size(), 1u);

  std::string summary = result.out;
  std::erase(summary, ',');
  const auto told = [&](const json& number, const std::string& noun) {
    const std::string words = number.dump() + " " + noun;
    EXPECT_NE((" " + summary).find(" " + words), std::string::npos) << words << " in " << summary;
  };
  told(end.at("programs"), "programs");
  told(end.at("verdicts").at("pass"), "pass");
  told(end.at("failures"), "failures of " + end.at("kinds").dump() + " kinds");
  told(end.at("states"), "states");
  told(end.at("programs_kept"), "programs kept");
  told(end.at("action_pairs"), "of " + end.at("legal_action_pairs").dump() + " action pairs");

  const std::vector<json> failures = of_kind("failure", log);
  EXPECT_EQ(failures.size(), end.at("kinds").get<std::size_t>());
  for (const json& failure : failures) {
    const std::string name =
        failure.at("class").get<std::string>() + "-" + failure.at("signature").get<std::string>();
    EXPECT_EQ(failure.at("file"), path("out/failures/" + name + ".program"));
    EXPECT_NE(result.err.find(failure.at("block").get<std::string>()), std::string::npos);
  }
}

TEST(CampaignLog, EachColumnStandsInTheReadme) {
  const json schema = json::parse(content_of(GATHERFUZZ_SOURCE_DIR "/ci/log.schema.json"));
  const std::string readme = content_of(GATHERFUZZ_SOURCE_DIR "/README.md");
  int columns = 0;
  for (const json& kind : schema.at("oneOf")) {
    for (const auto& [name, property] : kind.at("properties").items()) {
      EXPECT_NE(readme.find("`" + name), std::string::npos) << name;
      ++columns;
    }
  }
  EXPECT_GT(columns, 40);
}

TEST_F(CampaignRecordTest, AResumedCampaignAddsToTheLogBehindWholeLines) {
  EXPECT_EQ(run(fuzz("out", {"--runs", "50"})).exit_code, 0);
  const std::string before = content_of(path("out/log.jsonl"));
  write("out/log.jsonl", before + R"({"schema":"gatherfuzz-log-1","ki)");
  EXPECT_EQ(run(fuzz("out", {"--runs", "80", "--resume"})).exit_code, 0);
  EXPECT_TRUE(content_of(path("out/log.jsonl")).starts_with(before));
  const std::vector<json> log = log_of("out");
  const std::vector<json> begins = of_kind("begin", log), ends = of_kind("end", log);
  ASSERT_EQ(begins.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_TRUE(begins[1].at("resumed"));
  EXPECT_GT(begins[1].at("seconds"), 0.0);
  EXPECT_EQ(ends[0].at("programs"), 50);
  EXPECT_EQ(ends[1].at("programs"), 80);
  EXPECT_GT(ends[1].at("seconds"), begins[1].at("seconds"));
}

TEST_F(CampaignRecordTest, HistoryIsOfTheLastCampaignUpToWhatWasSaved) {
  CampaignFigures figures;
  const auto progress = [&figures](double seconds, uint64_t programs) {
    figures.seconds = seconds;
    figures.counts.programs = programs;
    return progress_line(figures) + "\n";
  };
  CampaignOptions options;
  const std::string fresh = begin_line(options, 0.0) + "\n";
  options.resume = true;
  const std::string log = fresh + progress(1, 10) + fresh + progress(1, 20) +
                          failure_line({"race", "0123abcd", "host", "file", "block", 21, false, 1.5}) + "\n" +
                          "no line of ours\n" + begin_line(options, 1.6) + "\n" + progress(2, 30) +
                          failure_line({"race", "0123abce", "host", "file", "block", 31, false, 2.5}) + "\n" +
                          progress(3, 40);
  const CampaignHistory history = read_history(log, 2.2);
  ASSERT_EQ(history.points.size(), 2u);
  EXPECT_EQ(history.points[0].programs, 20u);
  EXPECT_EQ(history.points[1].programs, 30u);
  ASSERT_EQ(history.failures.size(), 1u);
  EXPECT_EQ(history.failures[0].signature, "0123abcd");
  EXPECT_EQ(history.failures[0].program, 21u);
}

// A limit on the size of files, just above that of the log, stands for the full disk.
TEST_F(CampaignRecordTest, ALogThatCannotGrowEndsTheCampaignAndKeepsWholeLines) {
  std::string earlier;
  while (earlier.size() < 100'000) earlier += progress_line({}) + "\n";
  write("out/log.jsonl", earlier);
  before_exec_ = [&earlier] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{earlier.size() + 600, earlier.size() + 600};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  const Result result = run(fuzz("out", {"--runs", "100000", "--fault", kFault}));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.out.find(" programs, "), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("cannot write " + path("out/log.jsonl") + ": File too large"), std::string::npos)
      << result.err;
  EXPECT_EQ(of_kind("begin", log_of("out")).size(), 1u);
  EXPECT_TRUE(content_of(path("out/log.jsonl")).ends_with("}\n"));
}

TEST_F(CampaignRecordTest, TheProgramThatRunsIsOnDiskAndGoneAtTheEnd) {
  std::string lines = "set fp8_recipe mxfp8\nset data_parallel_size 8\nset num_layers 4\n";
  for (int i = 0; i < 20; ++i) lines += "train 10\n";
  const std::string text = content_of(program("corpus/slow.program", lines));
  const pid_t tool =
      start({"fuzz", "--runs", "0", "--runtime", "host", "--corpus", path("corpus"), "--out", path("out")});
  const std::string file = path("out/running/1.program");
  ASSERT_TRUE(eventually([&] { return content_of(file).ends_with("train 10\n"); }));
  kill(tool, SIGKILL);
  wait(tool);
  const std::string header = "gatherfuzz program v1\n", left = content_of(file);
  EXPECT_TRUE(left.starts_with(header + "# program 1\n")) << left;
  EXPECT_EQ(std::count(left.begin(), left.end(), '\n'), std::count(text.begin(), text.end(), '\n') + 1);

  EXPECT_EQ(run(fuzz("other", {"--runs", "30", "--jobs", "2"})).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("other/running")));
}

TEST_F(CampaignRecordTest, WhatAKillLeftIsToldFirstAndTheCampaignComesToTheSame) {
  const std::string failing =
      "# program 57\nset data_parallel_size 2\nset overlap_grad_reduce true\nset overlap_param_gather true\n"
      "set seq_length 8\nfault drop op=copy_main_params_to_param_buffer iteration=2\ntrain 3\n\n\n";
  const auto left = [&] {
    program("out/running/1.program", failing);
    program("out/running/2.program", "# program 58\ntra");
  };
  EXPECT_EQ(run(fuzz("out", {"--runs", "50"})).exit_code, 0);
  left();
  const Result result = run(fuzz("out", {"--runs", "80", "--resume"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("FAILURE "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("seed 1, program 57, "), std::string::npos) << result.err;
  EXPECT_EQ(of_kind("failure", log_of("out")).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(path("out/running")));
  const std::string whole = run(fuzz("whole", {"--runs", "80"})).out;
  EXPECT_EQ(result.out.substr(0, result.out.rfind(',')), whole.substr(0, whole.rfind(',')));

  left();
  const Result fresh = run(fuzz("out", {"--runs", "20"}));
  EXPECT_EQ(fresh.exit_code, 0) << fresh.err;
  EXPECT_NE(fresh.err.find(path("out/running") + ": left by a campaign that was killed"), std::string::npos)
      << fresh.err;
}

TEST_F(CampaignRecordTest, TheReportIsWellFormedAndTellsTheFailures) {
  const std::string out = "a<b&\"c\"";
  const Result result = run(fuzz(out, {"--runs", "300", "--fault", kFault}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const std::string page = content_of(path(out + "/report.html"));
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_EQ(page.find("a<b"), std::string::npos);
  EXPECT_NE(page.find("a&lt;b&amp;&quot;c&quot;/failures/"), std::string::npos);
  const std::vector<json> failures = of_kind("failure", log_of(out));
  ASSERT_EQ(failures.size(), 1u);
  const std::string class_name = failures[0].at("class"), signature = failures[0].at("signature");
  EXPECT_NE(page.find("<h3>" + class_name + " " + signature + "</h3>"), std::string::npos);
  EXPECT_NE(page.find("href=\"failures/" + class_name + "-" + signature + ".program\""), std::string::npos);
  EXPECT_NE(page.find("<code>gatherfuzz check --runtime symbolic "), std::string::npos);
  EXPECT_NE(page.find("<code>gatherfuzz corpus add "), std::string::npos);
  EXPECT_NE(page.find("Last writers, latest first"), std::string::npos);
  for (const InterestingShape& shape : interesting_shapes())
    EXPECT_NE(page.find(std::string("<th>") + std::string(shape.name) + "</th>"), std::string::npos);
  EXPECT_NE(page.find("<td>" + kFault + "</td>"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
}

TEST(CampaignReport, DrawsItsHistoryAndEscapesText) {
  CampaignOptions options;
  options.runtimes = {RuntimeKind::symbolic};
  CampaignHistory history;
  history.points = {{0.0, 0, 0}, {5.0, 1000, 300}, {10.0, 4000, 400}};
  history.failures.push_back({"race", "0123abcd", "symbolic", "gatherfuzz-out/failures/x.program",
                              "# </pre><script>alert('&')</script>\nKeep:      gatherfuzz corpus add x", 7,
                              true, 4.0});
  const std::string page = campaign_report(options, {}, history);
  EXPECT_EQ(markup_problem(page), "");
  EXPECT_NE(page.find("# &lt;/pre&gt;&lt;script&gt;alert('&amp;')"), std::string::npos);
  EXPECT_NE(page.find("<tr><th>Keep</th><td><code>gatherfuzz corpus add x</code></td></tr>"),
            std::string::npos);
  // The axes' ends are those of the points; the middle point of the programs is a quarter up.
  EXPECT_NE(page.find("M60.0,356.0L380.0,277.0L700.0,40.0"), std::string::npos) << page;
  EXPECT_NE(page.find(">4000</text>"), std::string::npos);
  EXPECT_EQ(markup_problem("<p>a & b</p>"), "bare & b</p>");
  EXPECT_EQ(markup_problem("<p><b>a</p></b>"), "</p> closes nothing");
  EXPECT_EQ(markup_problem("<p>"), "<p> is not closed");
}

}  // namespace

}  // namespace gatherfuzz
