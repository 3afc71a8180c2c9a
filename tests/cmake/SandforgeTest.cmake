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

# Gives the files of a target that include "test_paths.hpp" constants of type const char*, each a
# path: sandforge_test_paths(TARGET NAME path …). A path in a compile command would keep checkouts
# from sharing the compiler's cache; here it is in a small file of its own.
function(sandforge_test_paths target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_paths)
  set(names ${ARGN})
  set(header "#pragma once\n")
  set(source "")
  while(names)
    list(POP_FRONT names name path)
    string(APPEND header "extern \"C\" const char* const ${name};\n")
    string(APPEND source "extern const char* const ${name};\nconst char* const ${name} = \"${path}\";\n")
  endwhile()
  file(CONFIGURE OUTPUT ${folder}/test_paths.hpp CONTENT "${header}" @ONLY)
  file(GENERATE OUTPUT ${folder}/test_paths.c CONTENT "${source}")
  target_sources(${target} PRIVATE ${folder}/test_paths.c)
  target_include_directories(${target} PRIVATE ${folder})
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
