// GATHERFUZZ_REFERENCE_CLONES before a function compiles it for AVX2 as well; which one runs is chosen at
// start. AVX2 alone has no fused multiply-add, so both give the same bits.
#pragma once

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GATHERFUZZ_REFERENCE_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GATHERFUZZ_REFERENCE_CLONES
#endif
