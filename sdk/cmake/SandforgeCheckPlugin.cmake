# Checks one linked plugin: its exports, its manifest, and what the loader would make of it. Run
# after each link; can be run by hand on any plugin:
#   cmake -D PLUGIN=x.so [-D MANIFEST=x.json] [-D CHECKER=sandforge-check-manifest]
#     [-D STATIC_RUNTIME=ON] -P SandforgeCheckPlugin.cmake
# With CHECKER, the values of the manifest are checked as the loader does it. With MANIFEST, a plugin that fails is deleted.
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

if(NOT EXISTS "${PLUGIN}")
  message(FATAL_ERROR "There is no file ${PLUGIN}.")
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

if(STATIC_RUNTIME AND dynamic MATCHES "\\[(lib(stdc\\+\\+|c\\+\\+|c\\+\\+abi|gcc_s)\\.so[^]]*)\\]")
  refuse("needs ${CMAKE_MATCH_1}, but was to have the runtime in it: a library of LIBS brings it")
endif()

run(segments ${READELF} --program-headers --wide ${PLUGIN})
if(segments MATCHES "GNU_STACK[^\n]* RWE ")
  refuse("wants an executable stack, which hosts deny: assembly needs a .note.GNU-stack section")
endif()

set(section ${PLUGIN}.manifest)
execute_process(
  COMMAND ${OBJCOPY} --dump-section .sandforge.manifest=${section} ${PLUGIN} ${section}.copy
  RESULT_VARIABLE code ERROR_VARIABLE errors)
file(REMOVE ${section}.copy)
if(NOT code EQUAL 0 OR NOT EXISTS ${section})
  refuse("has no section .sandforge.manifest ${errors}")
endif()

# What a host asks of every manifest; the rest says CHECKER, or `sandforge plugins doctor`.
file(READ ${section} text)
function(refuse_manifest why)
  file(REMOVE ${section})
  refuse("its manifest ${why}")
endfunction()
string(JSON version ERROR_VARIABLE problem GET "${text}" manifest)
if(NOT version STREQUAL "1")
  refuse_manifest("is no JSON object with \"manifest\": 1")
endif()
string(JSON major ERROR_VARIABLE problem GET "${text}" abi major)
if(NOT ENTRY STREQUAL "sandforge_plugin_entry_v${major}")
  refuse_manifest("must have the abi.major that ${ENTRY} names")
endif()
string(JSON providers ERROR_VARIABLE problem LENGTH "${text}" providers)
if(problem OR providers EQUAL 0)
  refuse_manifest("names no provider")
endif()

if(CHECKER)
  execute_process(COMMAND ${CHECKER} ${section} ERROR_VARIABLE why RESULT_VARIABLE code)
  string(STRIP "${why}" why)
  if(code EQUAL 1)
    file(REMOVE ${section})
    refuse("${why}")
  elseif(NOT code EQUAL 0)  # such as where a library of it is absent: the loader will look again
    message(NOTICE "warning: ${PLUGIN}: the values of its manifest were not checked: ${CHECKER}"
      " failed (${code}) ${why}")
  endif()
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
