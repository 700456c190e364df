#pragma once
// GATHERFUZZ_HD marks a function that host and device code both call. Such a function is pure, touches no
// global state and calls nothing of the standard library, so that one source serves g++, clang++ and nvcc.

#ifdef __CUDACC__
#define GATHERFUZZ_HD __host__ __device__
#else
#define GATHERFUZZ_HD
#endif
