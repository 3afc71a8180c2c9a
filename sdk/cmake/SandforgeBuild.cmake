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
if(SANDFORGE_SANITIZE)
  target_compile_options(sandforge_flags INTERFACE
    -fsanitize=${SANDFORGE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(sandforge_flags INTERFACE -fsanitize=${SANDFORGE_SANITIZE})
  if(SANDFORGE_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Asio uses fences, which gcc's thread sanitizer does not model.
    target_compile_options(sandforge_flags INTERFACE -Wno-tsan)
  endif()
endif()
if(SANDFORGE_COVERAGE)
  target_compile_options(sandforge_flags INTERFACE --coverage)
  target_link_options(sandforge_flags INTERFACE --coverage)
endif()

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

# Files of one folder must not define the same name in an anonymous namespace.
function(sandforge_unity target)
  if(NOT SANDFORGE_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # It takes every file but the first for a header, where unnamed namespaces would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  get_target_property(all ${target} SOURCES)
  get_target_property(base ${target} SOURCE_DIR)
  list(SORT all)
  set(last "")
  foreach(source IN LISTS all)
    get_filename_component(full ${source} ABSOLUTE BASE_DIR ${base})
    get_filename_component(dir ${full} DIRECTORY)
    if(NOT dir STREQUAL last)
      set(last ${dir})
      set(count 0)
    endif()
    math(EXPR batch "${count} / 5")
    math(EXPR count "${count} + 1")
    file(RELATIVE_PATH name ${base} ${dir})
    string(MAKE_C_IDENTIFIER "${name}_${batch}" group)
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
  endforeach()
endfunction()
