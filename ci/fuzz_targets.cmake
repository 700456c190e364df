# The fuzz targets: each file fuzz/targets/NAME.cpp that is named below becomes
#   gatherfuzz-replay-NAME  the target on files, in every build
#   NAME                    the target with an engine: with LIB_FUZZING_ENGINE, the linker's word for one as
#                           OSS-Fuzz and others give it (then CXXFLAGS choose what is counted), or else with
#                           libFuzzer, in builds with clang and sanitizers
# `fuzz_targets` builds all of them; `cmake --install DIR --prefix $OUT --component fuzz` installs those with
# an engine.
set(LIB_FUZZING_ENGINE "$ENV{LIB_FUZZING_ENGINE}" CACHE STRING "What to link a fuzzing engine with")
set(GATHERFUZZ_ENGINE "${LIB_FUZZING_ENGINE}")
if(NOT GATHERFUZZ_ENGINE AND GATHERFUZZ_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(GATHERFUZZ_ENGINE -fsanitize=fuzzer)
endif()
find_program(LLVM_SYMBOLIZER NAMES llvm-symbolizer llvm-symbolizer-14)

add_custom_target(fuzz_targets)
add_library(gatherfuzz_target_input STATIC fuzz/targets/abort_with_class.cpp fuzz/targets/environment.cpp
  fuzz/targets/program_input.cpp fuzz/targets/report_input.cpp)
target_link_libraries(gatherfuzz_target_input PUBLIC gatherfuzz_fuzz)

# SOURCES are files of fuzz/targets beside NAME.cpp; the smoke test replays the folders REPLAY of corpus/, and
# with libFuzzer gives the target RUNS inputs from an empty corpus.
function(gatherfuzz_fuzz_target name)
  cmake_parse_arguments(TARGET "" "RUNS" "SOURCES;REPLAY" ${ARGN})
  set(sources fuzz/targets/${name}.cpp)
  foreach(file ${TARGET_SOURCES})
    list(APPEND sources fuzz/targets/${file})
  endforeach()
  set(replayer gatherfuzz-replay-${name})
  add_executable(${replayer} fuzz/targets/replay_main.cpp ${sources})
  target_link_libraries(${replayer} PRIVATE gatherfuzz_target_input)
  add_dependencies(fuzz_targets ${replayer})
  list(TRANSFORM TARGET_REPLAY PREPEND ${CMAKE_SOURCE_DIR}/corpus/)
  add_test(NAME ${name}_replay COMMAND ${replayer} ${TARGET_REPLAY})
  set_tests_properties(${name}_replay PROPERTIES LABELS fuzz-smoke TIMEOUT 300)
  if(NOT GATHERFUZZ_ENGINE)
    return()
  endif()
  add_executable(${name} ${sources})
  target_compile_definitions(${name} PRIVATE GATHERFUZZ_STATE_COUNTERS)
  target_link_libraries(${name} PRIVATE gatherfuzz_target_input ${GATHERFUZZ_ENGINE})
  add_dependencies(fuzz_targets ${name})
  install(TARGETS ${name} DESTINATION . COMPONENT fuzz EXCLUDE_FROM_ALL)
  if(NOT LIB_FUZZING_ENGINE)  # the options are libFuzzer's
    # It refuses a target without counted branches; the presets fuzz and fuzz-asan count those of all code.
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
    add_test(NAME ${name}_runs COMMAND ${name} -runs=${TARGET_RUNS} -seed=1 -max_len=4096)
    set_tests_properties(${name}_runs PROPERTIES LABELS fuzz-smoke TIMEOUT 300)
  endif()
endfunction()

set(programs seeds recipes regressions)
set(host_programs ${programs})
if(GATHERFUZZ_SANITIZE)  # numbers take long there, and corpus_recipes runs the same programs
  list(REMOVE_ITEM host_programs recipes)
endif()
set(program_sources program_mutator.cpp state_counters.cpp)
gatherfuzz_fuzz_target(program_symbolic_fuzzer RUNS 2000 SOURCES ${program_sources} REPLAY ${programs})
gatherfuzz_fuzz_target(program_host_fuzzer RUNS 100 SOURCES ${program_sources} REPLAY ${host_programs})
gatherfuzz_fuzz_target(program_parser_fuzzer RUNS 100000 REPLAY ${programs})
gatherfuzz_fuzz_target(checkpoint_file_fuzzer RUNS 100000 REPLAY checkpoints)

add_executable(targets_test fuzz/targets/targets_test.cpp fuzz/targets/program_mutator.cpp
  fuzz/targets/state_counters.cpp)
target_link_libraries(targets_test PRIVATE gatherfuzz_target_input GTest::gtest_main)
target_compile_definitions(targets_test PRIVATE GATHERFUZZ_STATE_COUNTERS GATHERFUZZ_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  GATHERFUZZ_BINARY="$<TARGET_FILE:gatherfuzz-replay-program_symbolic_fuzzer>")
add_dependencies(targets_test gatherfuzz-replay-program_symbolic_fuzzer)
add_test(NAME targets_test COMMAND targets_test)
set_tests_properties(targets_test PROPERTIES LABELS fuzz-smoke TIMEOUT 300)

# Campaigns with libFuzzer, which the tool finds beside itself.
if(TARGET program_symbolic_fuzzer AND NOT LIB_FUZZING_ENGINE)
  add_executable(libfuzzer_campaign_test fuzz/targets/libfuzzer_campaign_test.cpp)
  target_link_libraries(libfuzzer_campaign_test PRIVATE nlohmann_json::nlohmann_json GTest::gtest_main)
  target_compile_definitions(libfuzzer_campaign_test PRIVATE GATHERFUZZ_BINARY="$<TARGET_FILE:gatherfuzz>")
  if(GATHERFUZZ_SANITIZE MATCHES fuzzer-no-link)
    target_compile_definitions(libfuzzer_campaign_test PRIVATE GATHERFUZZ_COUNTS_ALL_BRANCHES)
  endif()
  add_dependencies(libfuzzer_campaign_test gatherfuzz program_symbolic_fuzzer program_host_fuzzer)
  add_dependencies(fuzz_targets libfuzzer_campaign_test)
  add_test(NAME libfuzzer_campaign_test COMMAND libfuzzer_campaign_test)
  set_tests_properties(libfuzzer_campaign_test PROPERTIES LABELS fuzz-smoke TIMEOUT 300)
endif()

# Whoever sorts crashes by their stack trace finds the class in it.
if(TARGET program_symbolic_fuzzer AND NOT LIB_FUZZING_ENGINE AND LLVM_SYMBOLIZER)
  add_test(NAME program_symbolic_fuzzer_trace COMMAND program_symbolic_fuzzer
    ${CMAKE_SOURCE_DIR}/corpus/regressions/replay-without-staging.program)
  set_tests_properties(program_symbolic_fuzzer_trace PROPERTIES LABELS fuzz-smoke TIMEOUT 60
    ENVIRONMENT "GATHERFUZZ_FAULT=drop op=copy_main_params_to_param_buffer when=replay_with_hooks_off"
    PASS_REGULAR_EXPRESSION "#[0-9]+ 0x[0-9a-f]+ in gatherfuzz::failure::zeroed_weights")
endif()
