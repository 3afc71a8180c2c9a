# Checks one linked plugin: its exports, its manifest, and that it is never unloaded. Run after
# each link; can be run by hand on any plugin:
#   cmake -D PLUGIN=x.so [-D MANIFEST=x.json] -P SandforgeCheckPlugin.cmake
cmake_minimum_required(VERSION 3.25)

foreach(tool NM READELF OBJCOPY)
  if(NOT ${tool})
    string(TOLOWER ${tool} ${tool})
    set(${tool} ${${tool}})
  endif()
endforeach()
if(NOT ENTRY)
  set(ENTRY sandforge_plugin_entry_v1)
endif()

# A plugin that is refused is removed, so that nobody loads it by mistake.
function(refuse why)
  if(MANIFEST)
    file(REMOVE ${PLUGIN})
  endif()
  # An error message of CMake is wrapped, a notice is not.
  message(NOTICE "error: ${PLUGIN}: ${why}")
  message(FATAL_ERROR "The plugin was refused.")
endfunction()

function(run out)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE errors RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    refuse("${ARGN} failed (${code}): ${errors}")
  endif()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

run(symbols ${NM} --dynamic --defined-only --format=posix ${PLUGIN})
string(REGEX MATCHALL "[^\n]+" lines "${symbols}")
set(names "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " .*" "" name "${line}")
  list(APPEND names ${name})
endforeach()
if(NOT names STREQUAL ENTRY)
  string(REPLACE ";" ", " names "${names}")
  refuse("must export ${ENTRY} and nothing else, but exports: ${names}.\n"
    "A definition of the entry needs default visibility and C linkage.")
endif()

run(dynamic ${READELF} --dynamic --wide ${PLUGIN})
if(NOT dynamic MATCHES "NODELETE")
  refuse("must be linked with -z nodelete: plugins are never unloaded")
endif()
if(dynamic MATCHES "TEXTREL")
  refuse("has relocations in its code: build all of it with -fPIC")
endif()

set(section ${PLUGIN}.manifest)
execute_process(
  COMMAND ${OBJCOPY} --dump-section .sandforge.manifest=${section} ${PLUGIN} ${section}.copy
  RESULT_VARIABLE code ERROR_VARIABLE errors)
file(REMOVE ${section}.copy)
if(NOT code EQUAL 0 OR NOT EXISTS ${section})
  refuse("has no section .sandforge.manifest ${errors}")
endif()
if(MANIFEST)
  file(SHA256 ${section} embedded)
  file(SHA256 ${MANIFEST} wanted)
  file(REMOVE ${section})
  if(NOT embedded STREQUAL wanted)
    refuse("the section .sandforge.manifest does not hold the bytes of ${MANIFEST}")
  endif()
endif()
file(REMOVE ${section})
