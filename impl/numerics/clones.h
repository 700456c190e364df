#pragma once
// GATHERFUZZ_CLONES before a host function compiles it for AVX2 as well; which one runs is chosen at start.
// AVX2 alone has no fused multiply-add, so both give the same bits.

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__CUDACC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GATHERFUZZ_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GATHERFUZZ_CLONES
#endif
