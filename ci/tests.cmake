# The style tests: scripts that hold the sources to the repository's own rules. Each also tests itself, by
# planting what it must find. Exit code 77: left out on this machine, and the script says why.
foreach(check include_arrows check_format check_layout)
  add_test(NAME ${check} COMMAND ${CMAKE_SOURCE_DIR}/ci/${check})
  add_test(NAME ${check}_self_test COMMAND ${CMAKE_SOURCE_DIR}/ci/${check} --self-test)
  set_tests_properties(${check} ${check}_self_test PROPERTIES LABELS style SKIP_RETURN_CODE 77 TIMEOUT 300)
endforeach()

# ci/pr and ci/nightly, with canaries that can and cannot be found.
add_test(NAME gates_test COMMAND ${CMAKE_SOURCE_DIR}/ci/gates_test $<TARGET_FILE:gatherfuzz>)
set_tests_properties(gates_test PROPERTIES LABELS cli TIMEOUT 300)
