# Settings shared by every target of this tree. Not installed.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)

# With a base folder, checkouts in different places share what was compiled once; the price is that
# a debugger may need to be told where the sources are.
find_program(SANDFORGE_CCACHE ccache)
find_program(SANDFORGE_ENV env)
if(SANDFORGE_CCACHE AND SANDFORGE_ENV AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${SANDFORGE_ENV} CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
    CCACHE_NOHASHDIR=true ${SANDFORGE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

# Packages of headers that were unpacked instead of installed (tests/tools/apt_install.sh).
if(EXISTS ${PROJECT_SOURCE_DIR}/build/deps/usr)
  list(APPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/build/deps/usr)
endif()

define_property(TARGET PROPERTY SANDFORGE_TEST_CODE INITIALIZE_FROM_VARIABLE SANDFORGE_TEST_CODE
  BRIEF_DOCS "The target is a test or a part of one")
define_property(TARGET PROPERTY SANDFORGE_READS_BYTES INITIALIZE_FROM_VARIABLE SANDFORGE_READS_BYTES
  BRIEF_DOCS "The target takes bytes of others apart, or reads structs that others laid out")

# Warnings and instrumentation that every target of ours takes.
add_library(sandforge_flags INTERFACE)
target_compile_options(sandforge_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  -fvisibility=hidden $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # At -O3 it warns about std::string's operator+, wrongly: https://gcc.gnu.org/PR105651
  target_compile_options(sandforge_flags INTERFACE
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-Wno-restrict>)
endif()
if(SANDFORGE_WERROR)
  target_compile_options(sandforge_flags INTERFACE -Werror)
endif()
# Tests run for less time than their optimisation takes.
target_compile_options(sandforge_flags INTERFACE
  $<$<AND:$<CONFIG:Debug>,$<BOOL:$<TARGET_PROPERTY:SANDFORGE_TEST_CODE>>>:-O0>)
if(SANDFORGE_SANITIZE)
  target_compile_options(sandforge_flags INTERFACE
    -fsanitize=${SANDFORGE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sandforge_flags INTERFACE -fsanitize=${SANDFORGE_SANITIZE})
  if(NOT SANDFORGE_SANITIZE MATCHES fuzzer)
    # A check at each access of a member doubles the time that code compiles. Without it a null
    # address still ends the process and the address sanitizer sees what was freed; what is left is
    # alignment and shape, which matter where memory is laid out by hand. Fuzzers check all.
    target_compile_options(sandforge_flags INTERFACE
      $<$<NOT:$<BOOL:$<TARGET_PROPERTY:SANDFORGE_READS_BYTES>>>:-fno-sanitize=null,alignment,object-size,vptr>)
  endif()
  if(SANDFORGE_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Asio uses fences, which gcc's thread sanitizer does not model.
    target_compile_options(sandforge_flags INTERFACE -Wno-tsan)
  endif()
endif()
if(SANDFORGE_COVERAGE)
  target_compile_options(sandforge_flags INTERFACE --coverage)
  target_link_options(sandforge_flags INTERFACE --coverage)
endif()

# What hunts trees of processes that grow meanwhile: optimised also where the sanitizers slow it.
function(sandforge_quick target)
  if(SANDFORGE_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O1>)
  endif()
endfunction()

# Programs of a thread sanitizer build run without address randomisation: on kernels with many
# random bits the sanitizer finds its shadow memory taken. CMake prefixes tests and build steps.
if(SANDFORGE_SANITIZE MATCHES thread)
  find_program(SANDFORGE_SETARCH setarch REQUIRED)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${SANDFORGE_SETARCH} -R)
endif()

# Programs and plugins lie in the build folder as they do under an install prefix, so that a
# program finds its plugins by the same relative path in both.
set(SANDFORGE_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/sandforge/plugins
  CACHE STRING "Where plugins go, below the prefix")
set(SANDFORGE_PROGRAM_OUTPUT_DIR ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_BINDIR})
set(SANDFORGE_PLUGIN_OUTPUT_DIR ${PROJECT_BINARY_DIR}/${SANDFORGE_PLUGIN_INSTALL_DIR})

option(SANDFORGE_UNITY "Compile the files of a folder together, up to five at a time" ON)

# Files of one folder must not define the same name in an anonymous namespace. CMake's own unity
# builds name the sources by absolute paths, which would keep ccache from serving another checkout.
function(sandforge_unity target)
  if(NOT SANDFORGE_UNITY)
    return()
  endif()
  get_target_property(all ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  list(SORT all)
  set(last "")
  set(groups "")
  set(others "")
  foreach(source IN LISTS all)
    if(NOT source MATCHES "[.]cpp$")
      list(APPEND others ${source})
      continue()
    endif()
    get_filename_component(full ${source} ABSOLUTE BASE_DIR ${base})
    get_filename_component(dir ${full} DIRECTORY)
    if(NOT dir STREQUAL last)
      set(last ${dir})
      set(count 0)
    endif()
    math(EXPR batch "${count} / 5")
    math(EXPR count "${count} + 1")
    file(RELATIVE_PATH name ${base} ${dir})
    string(MAKE_C_IDENTIFIER "${target}_${name}_${batch}" group)
    file(RELATIVE_PATH relative ${PROJECT_SOURCE_DIR} ${full})
    string(APPEND text_${group} "#include \"${relative}\"\n")
    list(APPEND groups ${group})
    get_source_file_property(definitions ${source} COMPILE_DEFINITIONS)
    if(definitions)
      list(APPEND definitions_${group} ${definitions})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES groups)
  set(files "")
  foreach(group IN LISTS groups)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/unity/${group}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${group}}" @ONLY)
    list(APPEND files ${file})
    list(REMOVE_DUPLICATES definitions_${group})
    set_property(SOURCE ${file} APPEND PROPERTY COMPILE_DEFINITIONS ${definitions_${group}})
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${files};${others}")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # It takes every file but the first for a header, where unnamed namespaces would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
