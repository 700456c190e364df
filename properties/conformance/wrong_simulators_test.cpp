// Simulators that are wrong in one way each: every one must fail a case, and every case must fail on one of
// them.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "properties/conformance/random_program.h"
#include "properties/conformance/simulator.h"
#include "properties/conformance/wrong_runtimes_for_tests.h"

namespace gatherfuzz {
namespace {

template <class WrongRuntime>
class WrongMachine : public Machine {
 public:
  explicit WrongMachine(std::unique_ptr<Machine> inner) : inner_(std::move(inner)) {}
  void run(const std::function<void(Runtime&)>& body) override {
    inner_->run([&](Runtime& rt) {
      WrongRuntime wrong(rt);
      body(wrong);
    });
  }
  float read(int rank, const View<float>& view) override { return inner_->read(rank, view); }
  bool holds(int rank, const View<float>& view, int value) override {
    return inner_->holds(rank, view, value);
  }

 private:
  std::unique_ptr<Machine> inner_;
};

// Ranks that cannot go on are let go.
class NoDeadlocks : public WrongMachine<Forward> {
 public:
  using WrongMachine::WrongMachine;
  void run(const std::function<void(Runtime&)>& body) override {
    try {
      WrongMachine::run(body);
    } catch (const Deadlock&) {
    }
  }
};

struct WrongSimulator {
  const char* name;
  MakeMachine make;
};

template <class M>
WrongSimulator machine(const char* name) {
  return {name,
          [](int ranks, int turn) { return std::make_unique<M>(simulator(MemoryKind::host)(ranks, turn)); }};
}
template <class R>
WrongSimulator wrong(const char* name) {
  return machine<WrongMachine<R>>(name);
}

std::vector<WrongSimulator> wrong_simulators() {
  return {
      wrong<NeverSays<Error::invalid_value>>("never says cudaErrorInvalidValue"),
      wrong<NeverSays<Error::illegal_state>>("never says cudaErrorIllegalState"),
      wrong<NeverSays<Error::illegal_address>>("never says cudaErrorIllegalAddress"),
      wrong<NeverSays<Error::stream_capture_unsupported>>("never says 900"),
      wrong<NeverSays<Error::stream_capture_invalidated>>("never says 901"),
      wrong<NeverSays<Error::stream_capture_merge>>("never says 902"),
      wrong<NeverSays<Error::stream_capture_unmatched>>("never says 903"),
      wrong<NeverSays<Error::stream_capture_unjoined>>("never says 904"),
      wrong<NeverSays<Error::stream_capture_isolation>>("never says 905"),
      wrong<NeverSays<Error::stream_capture_implicit>>("never says 906"),
      wrong<NeverSays<Error::captured_event>>("never says 907"),
      wrong<NeverSays<Error::stream_capture_wrong_thread>>("never says 908"),
      wrong<NeverSays<Error::nccl_invalid_usage>>("never says ncclInvalidUsage"),
      wrong<RelaxedCapturesBelongToTheirThread>("relaxed captures belong to their thread"),
      wrong<WaitsInCapturesAreForgotten>("waits in captures are forgotten"),
      wrong<EveryForkMustJoin>("every fork must join"),
      wrong<OneErrorInvalidatesEveryCapture>("one error invalidates every capture"),
      wrong<InvalidatedStreamsStayUnusable>("invalidated streams stay unusable"),
      wrong<CapturedOpsAlsoExecute>("captured ops also execute"),
      wrong<EveryStreamIsCaptured>("every stream is captured"),
      wrong<EveryCaptureProhibitsAllocation>("every capture prohibits allocation"),
      wrong<ModesAreForgotten>("modes are forgotten"),
      wrong<AWaitMeansTheLatestWork>("a wait means the latest work of the stream"),
      wrong<TheFirstRecordCounts>("the first record counts"),
      wrong<UnrecordedEventsAreIncomplete>("unrecorded events are incomplete"),
      wrong<LaunchesAreOrderedByStreamsAlone>("launches are ordered by streams alone"),
      wrong<ReplaysBeginAtOnce>("replays begin at once"),
      wrong<AGraphRunsOnce>("a graph runs once"),
      wrong<DestructionDropsTheLaunch>("destruction drops the launch"),
      wrong<EmptyGraphsAreRefused>("empty graphs are refused"),
      wrong<TheLegacyStreamIsAnyStream>("the legacy stream is any stream"),
      wrong<EveryStreamIsBlocking>("every stream is blocking"),
      wrong<TheHostDoesNotWait>("the host does not wait"),
      wrong<CollectivesLeaveZeros>("collectives leave zeros"),
      wrong<EmptyCollectivesAreRefused>("empty collectives are refused"),
      machine<NoDeadlocks>("no deadlocks"),
      {"issue order alone", [](int ranks, int) { return simulator(MemoryKind::host)(ranks, 0); }},
  };
}

TEST(WrongSimulators, EachFailsACaseAndEachCaseFailsOnOne) {
  std::map<std::string, std::string> caught;  // by case: the wrong simulators it fails on
  for (const WrongSimulator& simulator : wrong_simulators()) {
    int failing = 0;
    for (const Case& c : all_cases()) {
      if (run_case(c, simulator.make).differences.empty()) continue;
      ++failing;
      caught[std::string(c.rule) + ": " + c.name] += std::string(simulator.name) + "; ";
    }
    EXPECT_GT(failing, 0) << "no case sees that " << simulator.name;
  }
  for (const Case& c : all_cases()) {
    const std::string title = std::string(c.rule) + ": " + c.name;
    EXPECT_TRUE(caught.contains(title)) << title << " fails on no wrong simulator";
  }
}

// Drawn programs find wrong simulators too, and shrink to a few steps.
TEST(WrongSimulators, DrawnProgramsFindAndShrinkThem) {
  const MakeMachine right = simulator(MemoryKind::host);
  int found = 0;
  for (const WrongSimulator& wrong : wrong_simulators()) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      const auto disagrees = [&](const RandomProgram& p) {
        return !disagreement(p, right, wrong.make, 1).empty();
      };
      const RandomProgram program = draw_program(seed);
      if (!disagrees(program)) continue;
      const RandomProgram small = shrink(program, disagrees);
      EXPECT_LE(small.size(), 7u) << wrong.name << "\n" << to_string(small);
      EXPECT_TRUE(disagrees(small));
      ++found;
      break;
    }
  }
  EXPECT_GE(found, 20);
}

}  // namespace
}  // namespace gatherfuzz
