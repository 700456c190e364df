// Whole failure blocks, byte for byte: golden/NAME.RUNTIME.txt is the block of
// corpus/regressions/NAME.fault.program, without the line that tells version and time.
// GATHERFUZZ_WRITE_GOLDEN=1 writes them anew; read what changed.
#include "fuzz/failure_block.h"

#include <cstdlib>
#include <sstream>

#include "fuzz/files.h"
#include "fuzz/run_binary_for_tests.h"

namespace gatherfuzz {
namespace {

struct Golden {
  const char* name;
  RuntimeKind runtime;
};

constexpr Golden kGolden[] = {
    {"replay-without-staging", RuntimeKind::symbolic},
    {"replay-without-staging", RuntimeKind::host},
    {"staging-without-gather", RuntimeKind::symbolic},
    {"cast-dropped", RuntimeKind::symbolic},
    {"columnwise-copy-stale", RuntimeKind::symbolic},
    {"columnwise-copy-stale", RuntimeKind::host},
    {"gather-dropped", RuntimeKind::symbolic},
    {"gather-missing-on-one-rank", RuntimeKind::symbolic},
    {"param-range-not-cleared", RuntimeKind::symbolic},
    {"rank-gradient-missing", RuntimeKind::symbolic},
    {"optimizer-steps-twice", RuntimeKind::symbolic},
    {"clip-differs-on-one-rank", RuntimeKind::symbolic},
    {"clip-differs-on-one-rank", RuntimeKind::host},
    {"gradient-doubled", RuntimeKind::host},
    {"rank-gradient-missing", RuntimeKind::host},
    {"replay-reports-other-loss", RuntimeKind::host},
    {"evaluation-leaves-training-alone", RuntimeKind::symbolic},
    {"scale-applied-twice", RuntimeKind::host},
    {"replay-reports-other-loss", RuntimeKind::symbolic},
    {"communication-not-joined", RuntimeKind::symbolic},
    {"nonfinite-not-noticed", RuntimeKind::symbolic},
};

std::string block_of(const Golden& golden) {
  const std::string file =
      GATHERFUZZ_SOURCE_DIR "/corpus/regressions/" + std::string(golden.name) + ".fault.program";
  const ParseResult parsed = parse_program(content_of(file));
  EXPECT_TRUE(parsed.ok()) << file;
  Program program = without_comments(*parsed.program);
  program.expect.reset();
  Worker worker;
  const Outcome outcome = worker.run(program, golden.runtime);
  EXPECT_EQ(outcome.verdict, Verdict::fail) << file;
  ShrinkLimit limit;
  limit.time = std::chrono::hours(1);  // how small it gets must not depend on the machine
  Failure failure = investigate(worker, program, golden.runtime, outcome, limit);
  failure.file = "FILE";
  std::istringstream lines(failure_text(failure));
  std::string block;
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n)
    if (!line.starts_with("Found by ")) block += line + "\n";
  EXPECT_LE(n, 60);
  return block;
}

TEST(FailureBlock, IsWhatItWas) {
  const bool write = std::getenv("GATHERFUZZ_WRITE_GOLDEN") != nullptr;
  for (const Golden& golden : kGolden) {
    const std::string path = GATHERFUZZ_SOURCE_DIR "/fuzz/golden/" + std::string(golden.name) + "." +
                             std::string(name_of(golden.runtime)) + ".txt";
    const std::string block = block_of(golden);
    if (write) write_file(path, block);
    EXPECT_EQ(block, content_of(path)) << path;
  }
}

TEST(FailureBlock, ALongProgramIsCutShort) {
  Failure failure;
  failure.outcome.verdict = Verdict::fail;
  failure.outcome.failure = FailureClass::deadlock;
  for (int i = 0; i < 100; ++i) failure.program.actions.emplace_back().count = 1;
  failure.original = failure.program;
  const std::string text = failure_text(failure);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 59);
  EXPECT_NE(text.find("more lines in the file"), std::string::npos);
}

}  // namespace
}  // namespace gatherfuzz
