// usage: gatherfuzz_bench_corpus DIR
// Writes the benchmarks' programs as DIR/bench-001.program and so on.
#include <cstdio>
#include <fstream>
#include <iostream>

#include "properties/bench_corpus.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: gatherfuzz_bench_corpus DIR\n";
    return 2;
  }
  int number = 0;
  for (const gatherfuzz::Program& program : gatherfuzz::bench_programs()) {
    char name[32];
    std::snprintf(name, sizeof name, "/bench-%03d.program", ++number);
    std::ofstream file(argv[1] + std::string(name));
    if (!(file << gatherfuzz::print_program(program)).flush()) {
      std::cerr << "cannot write " << argv[1] << name << "\n";
      return 4;
    }
  }
  std::cout << number << " programs written to " << argv[1] << "\n";
}
