// `gatherfuzz corpus`: each rule is seen broken and kept.
#include "fuzz/run_binary_for_tests.h"
#include "properties/program.h"

namespace gatherfuzz {

namespace {

const std::string kFlags =
    "set overlap_param_gather true\nset overlap_grad_reduce true\nset data_parallel_size 2\n"
    "set hidden_size 32\nset ffn_hidden_size 32\nset seq_length 8\nset vocab_size 16\n";
const std::string kHealthy = kFlags + "train 3\n";
const std::string kStale = kFlags + "fault drop op=copy_main_params_to_param_buffer iteration=2\ntrain 3\n";

class CorpusTest : public BinaryTest {
 protected:
  // The files below a folder, by path within it.
  std::vector<std::string> files(const std::string& folder) const {
    std::vector<std::string> found;
    if (!std::filesystem::exists(path(folder))) return found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(folder)))
      if (!entry.is_directory())
        found.push_back(std::filesystem::relative(entry.path(), path(folder)).string());
    std::sort(found.begin(), found.end());
    return found;
  }
  Result check(const std::string& folder) { return run({"corpus", "check", path(folder)}); }
};

TEST_F(CorpusTest, AFolderAsItShouldBeIsFine) {
  program("regressions/stale.program", kHealthy + "expect pass\n");
  program("regressions/stale.fault.program", kStale + "expect fail: stale-weights\n");
  // The healthy half of two pairs is stored with each of them.
  program("regressions/other.program", kHealthy + "expect pass\n");
  program("regressions/other.fault.program",
          kFlags + "fault drop op=adam\ntrain 3\nexpect fail: skip-differs\n");
  program("found/x.program", "train 3\n");
  const Result result = check(".");
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(result.out, "5 files, 0 to repair\n");
}

TEST_F(CorpusTest, EveryRuleIsSeenBroken) {
  const std::string hash(16, '0');
  const struct {
    std::string file, lines, message;
  } cases[] = {
      {"a.program", "train 03\n",
       "a.program:2: not in canonical form: write 'train 3' in place of 'train 03'"},
      {"b.program", "set lr 0.001\ntrain 2\n",
       "b.program:2: not in canonical form: write 'train 2' in place of 'set lr"},
      {"c.program", "train 2",
       "c.program:3: not in canonical form: write '' in place of the end of the file"},
      {"Bad_Name.program", "train 2\n", "Bad_Name.program: rename it: expected a name of lower-case"},
      {"x--y.program", "train 2\n", "found 'x--y'"},
      {hash + ".program", "train 2\n", ".program, which is its hash"},
      {"d.fault.program", "train 2\n", "d.fault.program: rename it to d.program: it has no fault"},
      {"e.program", "fault drop op=adam\ntrain 2\n",
       "e.program: rename it to e.fault.program: it has a fault"},
      {"seeds/f.program", "train 2\n", "f.program: add an `expect` line"},
      {"regressions/g.fault.program", "fault drop op=adam\ntrain 2\nexpect fail: skip-differs\n",
       "regressions/g.program: the same program without its fault"},
  };
  for (const auto& c : cases) {
    program("here/" + c.file, c.lines);
    const Result result = check("here");
    EXPECT_EQ(result.exit_code, 1) << c.file << result.err;
    EXPECT_NE(result.out.find(c.message), std::string::npos) << c.message << "\nfound\n" << result.out;
    EXPECT_NE(result.out.find("1 file, 1 to repair\n"), std::string::npos) << result.out;
    std::filesystem::remove_all(path("here"));
  }
}

TEST_F(CorpusTest, FilesAreComparedWithEachOther) {
  program("here/a.program", kHealthy);
  program("here/b.program", "# what it says does not matter\n" + kHealthy + "expect pass\n");
  program("here/regressions/c.program", "train 2\nexpect pass\n");
  program("here/regressions/c.fault.program", "fault drop op=adam\ntrain 4\nexpect fail: skip-differs\n");
  const Result result = check("here");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("b.program: remove it: it does what " + path("here/a.program") + " does"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("by its fault and its expectation alone"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("4 files, 2 to repair\n"), std::string::npos) << result.out;
}

TEST_F(CorpusTest, WhatIsNoProgramExits2) {
  EXPECT_EQ(check("missing").exit_code, 2);
  program("here/a.program", "train 2\n");
  program("here/b.program", "trian 2\n");
  const Result result = check("here");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("b.program:2: expected set, "), std::string::npos) << result.err;
  EXPECT_EQ(result.out, "2 files, 1 to repair\n");
  std::filesystem::create_directories(path("empty"));
  EXPECT_NE(check("empty").err.find("expected *.program files below it, found none"), std::string::npos);
}

TEST_F(CorpusTest, AFailureIsAddedWithItsHealthyHalf) {
  const std::string file = program("x.program", "# Seen on a Tuesday.\n" + kStale);
  const Result result = run({"corpus", "add", file, "--dir", path("regressions")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> added = files("regressions");
  ASSERT_EQ(added.size(), 2u) << result.out;
  EXPECT_TRUE(added[0].starts_with("stale-weights-") && added[0].ends_with(".fault.program")) << added[0];
  const std::string text = content_of(path("regressions/" + added[0]));
  for (const char* part : {"# Seen on a Tuesday.\n", "# Added 20", " by gatherfuzz 0.1.0 (",
                           ": stale-weights on symbolic, signature ", "\nexpect fail: stale-weights\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  const std::string half = content_of(path("regressions/" + added[1]));
  EXPECT_NE(half.find("\ntrain 3\nexpect pass\n"), std::string::npos) << half;
  EXPECT_EQ(half.find("fault "), std::string::npos) << half;
  EXPECT_EQ(run({"check", path("regressions")}).exit_code, 0);
  EXPECT_EQ(check("regressions").exit_code, 0);

  const Result again = run({"corpus", "add", file, "--dir", path("regressions"), "--name", "other"});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find(added[0] + " is the same program"), std::string::npos) << again.err;
  const std::string longer = program("y.program", kStale.substr(0, kStale.size() - 2) + "4\n");
  const Result alike = run({"corpus", "add", longer, "--dir", path("regressions")});
  EXPECT_EQ(alike.exit_code, 1);
  EXPECT_NE(alike.err.find("has this name already; choose another one with --name"), std::string::npos)
      << alike.err;
  EXPECT_EQ(files("regressions"), added);
  EXPECT_EQ(run({"corpus", "add", longer, "--dir", path("regressions"), "--name", "later"}).exit_code, 0);
  EXPECT_EQ(files("regressions").size(), 4u);
}

// A failure that needs a twin is stored beside it: another text would choose another one.
TEST_F(CorpusTest, TheTwinOfAFailureIsNamed) {
  const std::string lines =
      "set cuda_graph_impl local\nset cuda_graph_scope full_iteration\nset hidden_size 32\n";
  const std::string fault = "fault coefficient op=average_loss iteration=5 by=2\ntrain 5\n";
  const std::string file = program("x.program", lines + "twin eager\n" + fault);
  ASSERT_EQ(run({"corpus", "add", file, "--dir", path("r")}).exit_code, 0);
  for (const std::string& added : files("r"))
    EXPECT_NE(content_of(path("r/" + added)).find("\ntwin eager\n"), std::string::npos) << added;
  EXPECT_EQ(run({"check", path("r")}).exit_code, 0);
}

TEST_F(CorpusTest, WhatIsNotTrueIsNotAdded) {
  const struct {
    std::string lines;
    std::vector<std::string> options;
    int exit_code;
    std::string message;
  } cases[] = {
      {kHealthy, {}, 2, "expected --name NAME for a program that does not fail (pass)"},
      {kHealthy, {"--name", "Not good"}, 2, "--name: expected a name of lower-case"},
      {kHealthy + "expect fail: race\n",
       {"--name", "x"},
       1,
       "'expect fail: race' must hold on every runtime, found symbolic pass, host pass"},
      {kFlags + "fault drop op=adam iteration=9\ntrain 1\n", {}, 2, "this fault never met an op to change"},
      {"trian 1\n", {}, 2, "x.program:2: expected set"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> arguments = {"corpus", "add", program("x.program", c.lines), "--dir", path("r")};
    arguments.insert(arguments.end(), c.options.begin(), c.options.end());
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, c.exit_code) << result.err;
    EXPECT_NE(result.err.find(c.message), std::string::npos) << c.message << "\nfound\n" << result.err;
    EXPECT_TRUE(files("r").empty());
  }
  EXPECT_EQ(
      run({"corpus", "add", program("x.program", kHealthy), "--dir", path("r"), "--name", "fine"}).exit_code,
      0);
  EXPECT_EQ(files("r"), std::vector<std::string>{"fine.program"});
}

// Three programs of which the second reaches all that the first does; one that says what it comes to.
const std::string kOne = "train 2\n", kTwo = "train 2\nevaluate 1\ntrain 1\n",
                  kThree = "train 2\nskip_iteration\n";

TEST_F(CorpusTest, MinimizeKeepsEveryStateInFewPrograms) {
  program("c/one.program", kOne);
  program("c/two.program", kTwo);
  program("c/three.program", kThree);
  program("c/longer.program", "train 2\nevaluate 1\ntrain 30\n");
  program("c/refused.program", "end_loop\n");
  program("c/said.program", "train 2\nexpect pass\n");
  program("c/planted.fault.program", "fault drop op=adam\ntrain 2\n");
  const Result result = run({"corpus", "minimize", path("c")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(files("c"), (std::vector<std::string>{"planted.fault.program", "said.program", "three.program",
                                                  "two.program"}))
      << result.out;
  EXPECT_NE(result.out.find("4 of 7 programs stay, "), std::string::npos) << result.out;
  const auto states = [](const std::string& out) { return out.substr(out.rfind(", ")); };
  const Result again = run({"corpus", "minimize", path("c")});
  EXPECT_EQ(again.out, "4 of 4 programs stay" + states(result.out));
}

TEST_F(CorpusTest, MergeAddsWhatIsNewAndLittleElse) {
  program("into/two.program", kTwo);
  program("a/one.program", kOne);
  program("a/three.program", "# why\n" + kThree + "expect pass\n");
  program("b/long.program", "train 3\nskip_iteration\n");
  program("b/planted.fault.program", "fault drop op=adam\nwarmup 1\ntrain 2\n");
  const Result result = run({"corpus", "merge", path("into"), path("a"), path("b")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("1 of 4 programs added, "), std::string::npos) << result.out;
  ASSERT_EQ(files("into").size(), 2u);
  EXPECT_EQ(content_of(path("into/" + files("into")[0])), "gatherfuzz program v1\n" + kThree);
  EXPECT_EQ(check("into").exit_code, 0);  // its name is its hash
  const Result again = run({"corpus", "merge", path("into"), path("a"), path("b")});
  EXPECT_NE(again.out.find("0 of 4 programs added, 0 new of "), std::string::npos) << again.out;
  EXPECT_EQ(run({"corpus", "merge", path("fresh/er"), path("into")}).exit_code, 0);
  EXPECT_EQ(files("fresh/er").size(), 2u);
}

// A program that the tool cannot judge well must neither vanish nor spread.
TEST_F(CorpusTest, FailuresAndBadFilesStayWhereTheyAre) {
  program("c/bad.program", "trian 2\n");
  program("c/fine.program", kOne);
  const std::string before = content_of(path("c/bad.program"));
  EXPECT_EQ(run({"corpus", "minimize", path("c")}).exit_code, 2);
  EXPECT_EQ(content_of(path("c/bad.program")), before);
  const Result merged = run({"corpus", "merge", path("into"), path("c")});
  EXPECT_EQ(merged.exit_code, 2);
  EXPECT_NE(merged.err.find("bad.program:2: expected set"), std::string::npos) << merged.err;
  EXPECT_EQ(files("into").size(), 1u);
  EXPECT_EQ(run({"corpus", "minimize", path("missing")}).exit_code, 2);
  EXPECT_EQ(run({"corpus", "merge", path("into"), path("missing")}).exit_code, 2);
  const std::string file = write("file", "");
  const Result blocked = run({"corpus", "merge", file + "/into", path("a")});
  EXPECT_NE(blocked.exit_code, 0);
}

TEST_F(CorpusTest, WrongCommandLinesSayWhatWasExpected) {
  const struct {
    std::vector<std::string> arguments;
    std::string message;
  } cases[] = {
      {{"corpus"}, "corpus: expected a command: check"},
      {{"corpus", "chek"}, "found 'chek'; nearest: check"},
      {{"corpus", "check"}, "DIR is required"},
      {{"corpus", "add", "x", "--nmae", "y"},
       "corpus add: expected --help, --name or --dir, found '--nmae'; nearest: --name"},
      {{"corpus", "merge", "x"}, "FROM is required"},
      {{"corpus", "check", "x", "y"}, "corpus check: expected no further argument, found 'y'"},
  };
  for (const auto& c : cases) {
    const Result result = run(c.arguments);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(c.message), std::string::npos) << c.message << "\nfound\n" << result.err;
  }
}

}  // namespace

}  // namespace gatherfuzz
