// Malformed and hostile program files: each error has its line, says what was expected and found, and comes
// quickly.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "properties/program.h"

namespace gatherfuzz {
namespace {

std::string with_header(const std::string& lines) {
  return "gatherfuzz program v1\n" + lines;
}

std::string errors_of(const std::string& text) {
  const ParseResult result = parse_program(text);
  EXPECT_EQ(result.ok(), result.errors.empty());
  std::string all;
  for (const ParseError& error : result.errors)
    all += std::to_string(error.line) + ": " + error.message + "\n";
  return all;
}

struct ErrorCase {
  const char* lines;  // after the header, so the first one is line 2
  const char* errors;
};

const ErrorCase kCases[] = {
    {"trian 2\n",
     "2: expected set, delay, twin, fault, an action or expect, found 'trian'; nearest: train\n"},
    {"action 2\n", "2: expected set, delay, twin, fault, an action or expect, found 'action'\n"},
    {"train\n", "2: expected N (1 to 1000), found nothing\n"},
    {"train x\n", "2: expected N to be 1 to 1000, found 'x'\n"},
    {"train 0\n", "2: expected N to be 1 to 1000, found '0'\n"},
    {"train 1001\n", "2: expected N to be 1 to 1000, found '1001'\n"},
    {"train 1 2\n", "2: expected the end of the line, found '2'\n"},
    {"train n=2\n", "2: expected the end of the line, found 'n'\n"},
    {"start_loop on\n", "2: expected key=value, found 'on'\n"},
    {"start_loop hook=on\n", "2: expected the key hooks, found 'hook'; nearest: hooks\n"},
    {"start_loop hooks=onn\n", "2: expected hooks= to be off or on, found 'onn'; nearest: on\n"},
    {"start_loop hooks=on hooks=on\n", "2: expected hooks= once, found it twice\n"},
    {"inject_nonfinite\n", "2: expected rank= (0 to 7), found nothing\n"},
    {"inject_nonfinite rank=8\n", "2: expected rank= to be 0 to 7, found '8'\n"},
    {"set_microbatches 17\n", "2: expected N to be 1 to 16, found '17'\n"},
    {"set num_layers\n", "2: expected set FLAG VALUE, found 1 words after set\n"},
    {"set num_layers 1 2\n", "2: expected set FLAG VALUE, found 3 words after set\n"},
    {"set num_layer 1\n", "2: expected the name of a flag, found 'num_layer'; nearest: num_layers\n"},
    {"set num_layers 99\n", "2: expected num_layers to be 1 to 16 (a whole number), found '99'\n"},
    {"set num_layers 1\n\nset num_layers 1\n",
     "4: expected num_layers to be set once, found it set in line 2 already\n"},
    {"delay\n", "2: expected STREAM (compute or comm), found nothing\n"},
    {"delay com by=1\n", "2: expected STREAM to be compute or comm, found 'com'; nearest: comm\n"},
    {"delay comm\n", "2: expected by= (1 to 1000), found nothing\n"},
    {"delay by=1 comm\n", "2: expected key=value, found 'comm'\n"},
    {"delay comm by=1 op=a/b\n", "2: expected op= to be a name, found 'a/b'\n"},
    {"fault\n",
     "2: expected the kind of fault to be drop, duplicate, insert, drop-wait, previous-value or coefficient, "
     "found ''\n"},
    {"fault dorp op=a\n",
     "2: expected the kind of fault to be drop, duplicate, insert, drop-wait, previous-value or coefficient, "
     "found 'dorp'; nearest: drop\n"},
    {"fault drop\n", "2: expected op= (a name), found nothing\n"},
    {"fault insert op=a\n", "2: expected before= (a name), found nothing\n"},
    {"fault coefficient op=a\n", "2: expected by= (-1e+06 to 1e+06), found nothing\n"},
    {"fault coefficient op=a by=inf\n", "2: expected by= to be -1e+06 to 1e+06, found 'inf'\n"},
    {"fault drop op=a before=b\n",
     "2: expected the key op, rank, iteration, when, after, bucket, param or at, found 'before'\n"},
    {"fault drop op=a at=launch\n",
     "2: expected at= to be execute (only execute is implemented), found 'launch'\n"},
    {"fault drop op=a iteration=0\n",
     "2: expected iteration= to be 1 to 1000, or with + from there on, found '0'\n"},
    {"fault drop op=a iteration=+\n",
     "2: expected iteration= to be 1 to 1000, or with + from there on, found '+'\n"},
    {"train 1\nset seed 1\n",
     "3: expected set, delay, twin, fault, actions and expect in this order, found 'set' after action "
     "lines\n"},
    {"fault drop op=a\ndelay comm by=1\n",
     "3: expected set, delay, twin, fault, actions and expect in this order, found 'delay' after fault "
     "lines\n"},
    {"expect pass\ntrain 1\n",
     "3: expected set, delay, twin, fault, actions and expect in this order, found 'train' after expect "
     "lines\n"},
    {"expect pass\nexpect pass\n", "3: expected at most one expect line\n"},
    {"expect\n", "2: expected the verdict to be pass, refused, fail or vacuous, found ''\n"},
    {"expect pas\n",
     "2: expected the verdict to be pass, refused, fail or vacuous, found 'pas'; nearest: pass\n"},
    {"expect skipped\n", "2: expected the verdict to be pass, refused, fail or vacuous, found 'skipped'\n"},
    {"expect pass: flags\n", "2: expected nothing after pass, found ': flags'\n"},
    {"expect refused: flag\n",
     "2: expected refused: REASON, a reason of flags, action-order, guard, capture-rule, limit or "
     "nonfinite-grad, "
     "found 'flag'; nearest: flags\n"},
    {"train x\n\n# c\ntrian 1\n",
     "2: expected N to be 1 to 1000, found 'x'\n"
     "5: expected set, delay, twin, fault, an action or expect, found 'trian'; nearest: train\n"},
    {"train 600\ntrain 401\ntrain 1\n", "3: expected at most 1000 training steps, found 1001\n"},
    {"train 1\x01\n", "2: expected UTF-8 text without control characters\n"},
    {"# \xC3\n", "2: expected UTF-8 text without control characters\n"},
    {"# \xC0\x80\n", "2: expected UTF-8 text without control characters\n"},
};

TEST(ProgramErrors, EachKindHasItsLineAndSaysWhatWasExpected) {
  for (const ErrorCase& c : kCases) EXPECT_EQ(errors_of(with_header(c.lines)), c.errors) << c.lines;
}

TEST(ProgramErrors, UnknownClassNamesTheNearest) {
  const std::string errors = errors_of(with_header("expect fail: zero-weights\n"));
  EXPECT_NE(errors.find("2: expected fail: CLASS, a class of deadlock, capture-error"), std::string::npos)
      << errors;
  EXPECT_NE(errors.find("found 'zero-weights'; nearest: zeroed-weights\n"), std::string::npos) << errors;
  EXPECT_NE(errors_of(with_header("expect fail\n")), "");
}

TEST(ProgramErrors, FirstLine) {
  const std::string expected = "1: expected the first line to be 'gatherfuzz program v1', found ";
  EXPECT_EQ(errors_of(""), expected + "''\n");
  EXPECT_EQ(errors_of("train 1\ntrain x\n"), expected + "'train 1'\n");
  EXPECT_EQ(errors_of("gatherfuzz program v2\n"), expected + "'gatherfuzz program v2'\n");
  EXPECT_EQ(errors_of("\ngatherfuzz program v1\n"), expected + "''\n");
  EXPECT_EQ(errors_of("\xEF\xBB\xBFgatherfuzz program v1\n"), expected + "'...gatherfuzz program v1'\n");
  EXPECT_EQ(errors_of("gatherfuzz program v1"), "");
}

TEST(ProgramErrors, LimitsHoldExactly) {
  const std::string line(197, 'x');
  EXPECT_EQ(errors_of(with_header("# x" + line + "\n")), "");
  EXPECT_EQ(errors_of(with_header("# xx" + line + "\n")),
            "2: expected at most 200 characters in a line, found 201\n");
  const std::string comment(190, 'c');  // "train 1  #" and this are 200 characters
  EXPECT_EQ(errors_of(with_header("train 1#" + comment + "\n")), "");
  EXPECT_EQ(errors_of(with_header("train 1#" + comment + "c\n")),
            "2: expected at most 200 characters in the printed line, found 201\n");
  std::string umlauts = "# ";
  for (int i = 0; i < 198; ++i) umlauts += "\xC3\xA4";
  EXPECT_EQ(errors_of(with_header(umlauts + "\n")), "") << "characters, not bytes";

  std::string actions;
  for (size_t i = 0; i < kMaxActions; ++i) actions += "skip_iteration\n";
  EXPECT_EQ(errors_of(with_header(actions)), "");
  EXPECT_EQ(errors_of(with_header(actions + "reset_graph\nreset_graph\n")),
            "258: expected at most 256 actions\n");

  EXPECT_EQ(errors_of(with_header(std::string(4095, '\n'))), "");
  EXPECT_EQ(errors_of(with_header(std::string(4095, '\n') + "#")), "4097: expected at most 4096 lines\n");
  EXPECT_EQ(errors_of(std::string(65537, '#')), "1: expected at most 65536 bytes, found 65537\n");
}

TEST(ProgramErrors, ManyErrorsAreCutOff) {
  std::string lines;
  for (int i = 0; i < 4000; ++i) lines += "zzz\n";
  EXPECT_EQ(parse_program(with_header(lines)).errors.size(), kMaxParseErrors);
}

TEST(ProgramErrors, HostileInputsAreQuick) {
  const auto start = std::chrono::steady_clock::now();
  std::mt19937_64 random(7);
  std::string binary(60000, '\0');
  for (char& c : binary) c = static_cast<char>(random());
  std::string deep = "fault drop op=a";
  for (int i = 0; i < 90; ++i) deep += " =";
  std::string crowded;
  for (int i = 0; i < 320; ++i) crowded += std::string(199, 'a' + i % 26) + "\n";
  const std::string inputs[] = {binary,
                                with_header(binary),
                                std::string(60000, '\0'),
                                std::string(10000000, 'a'),
                                std::string(1000000, '\n'),
                                with_header(std::string(1000000, '\n')),
                                with_header(std::string(60000, ' ')),
                                with_header(deep),
                                with_header(crowded),
                                with_header("set " + std::string(190, 'x') + " 1"),
                                std::string("\n"),
                                std::string("\0", 1),
                                with_header("set a=b c=d"),
                                with_header("="),
                                with_header("expect :"),
                                with_header("train =1")};
  size_t refused = 0;
  for (const std::string& input : inputs) refused += !parse_program(input).ok();
  EXPECT_EQ(refused, std::size(inputs));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

}  // namespace
}  // namespace gatherfuzz
