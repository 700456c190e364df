// What the targets' parts promise to an engine, and the replayer as people run it.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "fuzz/run_binary_for_tests.h"
#include "fuzz/targets/abort_with_class.h"
#include "fuzz/targets/program_input.h"
#include "fuzz/targets/state_counters.h"
#include "fuzz/targets/target.h"

namespace gatherfuzz {

namespace {

constexpr char kSource[] = GATHERFUZZ_SOURCE_DIR;
constexpr char kStaged[] = "/corpus/regressions/replay-without-staging.program";

std::string mutated(std::string text, unsigned seed, std::size_t max_size = 4096) {
  const std::size_t size = text.size();
  text.resize(std::max(size, max_size));
  text.resize(LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(text.data()), size, max_size, seed));
  return text;
}

const uint8_t* bytes(const std::string& text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string crossed(const std::string& one, const std::string& other, unsigned seed) {
  std::string out(4096, '\0');
  out.resize(LLVMFuzzerCustomCrossOver(bytes(one), one.size(), bytes(other), other.size(),
                                       reinterpret_cast<uint8_t*>(out.data()), out.size(), seed));
  return out;
}

std::optional<Program> input(const std::string& text) {
  return program_input(bytes(text), text.size());
}

void expect_valid(const std::string& text) {
  const ParseResult parsed = parse_program(text);
  ASSERT_TRUE(parsed.ok()) << text;
  EXPECT_FALSE(refusal_before_run(*parsed.program)) << text;
  EXPECT_TRUE(parsed.program->faults.empty() && !parsed.program->expect) << text;
  EXPECT_EQ(print_program(*parsed.program), text);
}

TEST(ProgramMutatorTest, WritesValidProgramsFromAnyBytes) {
  const std::string faulted =
      content_of(std::string(kSource) + "/corpus/regressions/cast-dropped.fault.program");
  for (const std::string& text : {std::string(), std::string("\xff\0garbage", 9), faulted,
                                  std::string("gatherfuzz program v1\nset hidden_size 17\ntrain 1000\n")}) {
    for (unsigned seed = 0; seed < 50; ++seed) {
      expect_valid(mutated(text, seed));
      expect_valid(crossed(text, faulted, seed));
    }
  }
}

TEST(ProgramMutatorTest, TheSeedDecides) {
  const std::string text = content_of(std::string(kSource) + kStaged);
  std::set<std::string> results;
  for (unsigned seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(mutated(text, seed), mutated(text, seed));
    EXPECT_EQ(crossed(text, text, seed), crossed(text, text, seed));
    results.insert(mutated(text, seed));
  }
  EXPECT_GT(results.size(), 10u);
}

TEST(ProgramMutatorTest, EditsTheProgramThatItIsGivenOrDrawsAnother) {
  const std::string text = "gatherfuzz program v1\nset seed 4711\ntrain 2\n";
  int mutated_here = 0, crossed_here = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const auto has_seed = [](const std::string& t) { return t.find("set seed 4711") != t.npos; };
    mutated_here += has_seed(mutated(text, seed)) ? 1 : 0;
    crossed_here += has_seed(crossed(text, text, seed)) ? 1 : 0;
  }
  EXPECT_GT(mutated_here, 30);
  EXPECT_LT(mutated_here, 70);
  EXPECT_GT(crossed_here, 70);  // now and then the flag itself is edited
}

TEST(ProgramMutatorTest, SaysThatAProgramDoesNotFit) {
  EXPECT_EQ(mutated("", 1, 20), "");
}

TEST(ProgramInputTest, TakesWhatTheCorpusHolds) {
  for (const char* folder : {"seeds", "recipes", "bench"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::string(kSource) + "/corpus/" + folder)) {
      if (entry.path().extension() != ".program") continue;
      const std::optional<Program> program = input(content_of(entry.path()));
      ASSERT_TRUE(program) << entry.path();
      EXPECT_FALSE(program->expect);
    }
  }
}

TEST(ProgramInputTest, LeavesOutFaultsAndLargePrograms) {
  const std::string first = "gatherfuzz program v1\n";
  EXPECT_TRUE(input(first + "train 2\n"));
  EXPECT_FALSE(input(first + "fault drop op=quantize\ntrain 2\n"));
  EXPECT_FALSE(input(first + "set hidden_size 1024\nset ffn_hidden_size 4096\ntrain 20\n"));
  EXPECT_FALSE(input(first + "train 1000\n"));
  EXPECT_FALSE(input(first + "evaluate 1000\ntrain 1\n"));
  EXPECT_FALSE(input("train 2\n"));
}

// The counters that an engine looks at: the linker names the ends of their section.
extern "C" uint8_t __start___libfuzzer_extra_counters, __stop___libfuzzer_extra_counters;

std::ptrdiff_t states_counted() {
  return std::count_if(&__start___libfuzzer_extra_counters, &__stop___libfuzzer_extra_counters,
                       [](uint8_t counter) { return counter != 0; });
}

class StateCountersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::fill(&__start___libfuzzer_extra_counters, &__stop___libfuzzer_extra_counters, uint8_t{0});
  }
  void TearDown() override { unsetenv("GATHERFUZZ_WITHOUT"); }
};

TEST_F(StateCountersTest, EachStateHasACounter) {
  EXPECT_EQ(states_counted(), 0);
  count_states(std::vector<uint32_t>{1, 2, 70'000, 2});
  EXPECT_EQ(states_counted(), 3);
}

TEST_F(StateCountersTest, TheStatesOfAJudgedProgramAreCounted) {
  judge_input(*input("gatherfuzz program v1\nset data_parallel_size 2\ntrain 2\n"), RuntimeKind::symbolic);
  EXPECT_GE(states_counted(), 2);
}

TEST_F(StateCountersTest, CanBeLeftOut) {
  setenv("GATHERFUZZ_WITHOUT", "mutator,states", 1);
  count_states(std::vector<uint32_t>{1, 2});
  EXPECT_EQ(states_counted(), 0);
  setenv("GATHERFUZZ_WITHOUT", "nonsense", 1);
  EXPECT_EXIT(count_states(std::vector<uint32_t>{1}), ::testing::ExitedWithCode(2),
              "GATHERFUZZ_WITHOUT: expected mutator or states, found 'nonsense'");
}

TEST_F(StateCountersTest, WithoutTheMutatorProgramsAreNotCrossed) {
  const std::string text = content_of(std::string(kSource) + kStaged);
  EXPECT_NE(crossed(text, text, 1), "");
  setenv("GATHERFUZZ_WITHOUT", "mutator", 1);
  EXPECT_EQ(crossed(text, text, 1), "");
}

TEST(AbortWithClassTest, EachClassHasAFunctionOfItsName) {
  for (std::size_t i = 0; i < std::size(kFailureClassNames); ++i) {
    std::string name(kFailureClassNames[i]);
    for (char& c : name) c = c == '-' ? '_' : c;
    EXPECT_DEATH(abort_with_class(static_cast<FailureClass>(i)),
                 "aborts in gatherfuzz::failure::" + name + "\n");
  }
}

class ReplayTest : public BinaryTest {
 protected:
  void TearDown() override {
    unsetenv("GATHERFUZZ_FAULT");
    BinaryTest::TearDown();
  }
};

TEST_F(ReplayTest, AFailureIsToldAndAborts) {
  const std::string file = std::string(kSource) + kStaged;
  EXPECT_EQ(run({file}).exit_code, 0) << content_of(path("stderr"));
  setenv("GATHERFUZZ_FAULT", "drop op=copy_main_params_to_param_buffer when=replay_with_hooks_off", 1);
  const Result planted = run({file});
  EXPECT_EQ(planted.exit_code, 128 + SIGABRT);
  for (const char* part :
       {"FAILURE zeroed-weights  symbolic", "reproduced 3 of 3", "Last writers, latest first",
        "  fault drop op=copy_main_params_to_param_buffer when=replay_with_hooks_off\n",
        "aborts in gatherfuzz::failure::zeroed_weights\n"})
    EXPECT_NE(planted.err.find(part), std::string::npos) << part << "\n" << planted.err;
}

TEST_F(ReplayTest, ReplaysFilesAndAllThatIsBelowFolders) {
  const std::string one = write("inputs/deep/one", "any bytes");
  write("inputs/two", "gatherfuzz program v1\ntrain 1\n");
  EXPECT_EQ(run({one, path("inputs")}).out, "3 inputs replayed\n");
}

TEST_F(ReplayTest, SaysWhatIsWrongWithItsArguments) {
  std::filesystem::create_directories(path("empty"));
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "expected FILE|DIR..."},
      {{path("missing")}, "missing: No such file"},
      {{path("empty")}, "no file is below this folder"},
      {{write("large", std::string((1 << 20) + 1, ' '))}, "expected at most 1,048,576 bytes"}};
  for (const auto& [arguments, message] : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  }
  setenv("GATHERFUZZ_FAULT", "dorp op=quantize", 1);
  const Result result = run({std::string(kSource) + kStaged});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("GATHERFUZZ_FAULT: "), std::string::npos) << result.err;
}

}  // namespace

}  // namespace gatherfuzz
