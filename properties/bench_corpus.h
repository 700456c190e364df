// The benchmarks' programs: 200 generated ones of one shape, so that figures of different days compare. They
// are stored in corpus/bench; bench_corpus_main.cpp writes them anew after a change that makes them worth it.
#pragma once

#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

inline constexpr int kBenchPrograms = 200;

// Legal programs with two layers, two ranks and two buckets; every second one replays a graph, every fourth
// one evaluates; about twelve training steps on average. Always the same for one version of the generator.
std::vector<Program> bench_programs();

// What a set of programs comes to.
struct BenchFigures {
  int programs = 0;
  int legal = 0;      // not refused before they run, and no injection that ends them
  int replaying = 0;  // at least one step replays a graph
  int evaluating = 0;
  int mxfp8 = 0;
  int fitting = 0;  // two layers, two ranks, two buckets
  double mean_steps = 0.0;
  double steps_deviation = 0.0;  // of one program's steps
};
BenchFigures bench_figures(const std::vector<Program>& programs);

}  // namespace gatherfuzz
