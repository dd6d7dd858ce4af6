# Runs the command and looks at its exit code and at what it says: CTest by itself looks at one or
# the other. With OCTET_TEST_SKIPS_WITHOUT_DEVICE in the environment exit code 3 is no failure.
execute_process(COMMAND ${COMMAND} ${ARGS} RESULT_VARIABLE code OUTPUT_VARIABLE out
                ERROR_VARIABLE err)
set(all "${out}${err}")
if(DEFINED ENV{OCTET_TEST_SKIPS_WITHOUT_DEVICE} AND code EQUAL 3)
  message("SKIPPED: ${err}")
  return()
endif()
if(NOT code STREQUAL EXIT)
  message(FATAL_ERROR "exit code ${code}, expected ${EXIT}; it says:\n${all}")
endif()
if(NOT all MATCHES "${SAYS}")
  message(FATAL_ERROR "expected to match: ${SAYS}\nit says:\n${all}")
endif()
