# sandforge_test(): one Catch2 program, every test case of it a ctest test.
find_package(Catch2 2.13 REQUIRED)

set(SANDFORGE_DISCOVER_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/DiscoverTests.cmake)

# sandforge_test(NAME SOURCES … LIBS …
#   [LABELS …]        ctest labels; the target tests-LABEL builds all programs of a label
#   [STANDARD 17]     C++ standard, 20 by default
#   [TIMEOUT 300]     seconds for one test case; three times that with a sanitizer
#   [ENVIRONMENT A=b …]
#   [DEPENDS …]       targets that must be built first, such as plugins
#   [LOCK name]       cases of programs with the same lock do not run at the same time
#   [RUN_SERIAL])     nothing runs beside a case of this program
#
# A case that cannot run here says so with WARN("SKIPPED: why") and returns.
function(sandforge_test name)
  cmake_parse_arguments(T "RUN_SERIAL" "STANDARD;TIMEOUT;LOCK"
    "SOURCES;LIBS;LABELS;ENVIRONMENT;DEPENDS" ${ARGN})
  if(T_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sandforge_test(${name}): unknown arguments: ${T_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT T_STANDARD)
    set(T_STANDARD 20)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(SANDFORGE_SANITIZE)
    math(EXPR T_TIMEOUT "3 * ${T_TIMEOUT}")
  endif()

  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE sandforge_flags ${T_LIBS} Catch2::Catch2WithMain)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_features(${name} PRIVATE cxx_std_${T_STANDARD})
  # For tests that read files of the source tree or run programs of the build tree. Only the files
  # that say the names get them: a path in every command would keep checkouts from sharing a cache.
  foreach(source IN LISTS T_SOURCES)
    get_filename_component(file ${source} ABSOLUTE)
    if(EXISTS ${file})
      file(STRINGS ${file} named REGEX "SANDFORGE_(SOURCE|BINARY)_DIR")
      if(named)
        set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
          SANDFORGE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SANDFORGE_BINARY_DIR="${PROJECT_BINARY_DIR}")
      endif()
    endif()
  endforeach()
  if(T_DEPENDS)
    add_dependencies(${name} ${T_DEPENDS})
  endif()
  foreach(label IN LISTS T_LABELS)
    if(NOT TARGET tests-${label})
      add_custom_target(tests-${label})
    endif()
    add_dependencies(tests-${label} ${name})
  endforeach()

  _sandforge_discover(${name} ${name})
endfunction()

# The cases of a program once more, in another environment: sandforge_test_variant(NAME PROGRAM
# ENVIRONMENT A=b … [LABELS …] [TIMEOUT 300] [LOCK name] [RUN_SERIAL]).
function(sandforge_test_variant name program)
  cmake_parse_arguments(T "RUN_SERIAL" "TIMEOUT;LOCK" "LABELS;ENVIRONMENT" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  if(SANDFORGE_SANITIZE)
    math(EXPR T_TIMEOUT "3 * ${T_TIMEOUT}")
  endif()
  _sandforge_discover(${name} ${program})
endfunction()

# Reads the T_ variables of its caller.
function(_sandforge_discover name program)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${name}_tests.cmake)
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${list} VERBATIM
    COMMAND ${CMAKE_COMMAND}
      -D "PROGRAM=$<TARGET_FILE:${program}>" -D "NAME=${name}" -D "LIST=${list}"
      -D "EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -D "DIRECTORY=${CMAKE_CURRENT_BINARY_DIR}"
      -D "LABELS=${T_LABELS}" -D "TIMEOUT=${T_TIMEOUT}" -D "ENVIRONMENT=${T_ENVIRONMENT}"
      -D "LOCK=${T_LOCK}" -D "SERIAL=${T_RUN_SERIAL}"
      -P ${SANDFORGE_DISCOVER_SCRIPT})
  # A program that was not built is a failed test, not a missing one.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  file(WRITE ${include} "if(EXISTS \"${list}\")\n  include(\"${list}\")\nelse()\n"
    "  add_test(\"${name}: not built\" \"${name}-not-built\")\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()

# A test that is a script or another program: sandforge_script_test(NAME COMMAND … [LABELS …]
# [TIMEOUT 300] [ENVIRONMENT …] [RUN_SERIAL]). Exit code 77 means skipped.
function(sandforge_script_test name)
  cmake_parse_arguments(T "RUN_SERIAL" "TIMEOUT" "COMMAND;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 300)
  endif()
  add_test(NAME ${name} COMMAND ${T_COMMAND})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77
    LABELS "${T_LABELS}" ENVIRONMENT "${T_ENVIRONMENT}")
  if(T_RUN_SERIAL)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
