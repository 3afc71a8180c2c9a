# sandforge_add_plugin(): a provider plugin from sources and a manifest. Installed with the sdk.
#
# sandforge_add_plugin(TARGET
#   SOURCES …             C or C++ sources; one of them defines the entry symbol
#   MANIFEST file.json    its bytes become the section .sandforge.manifest of the plugin
#   [OUTPUT_NAME name]    file name without .so, TARGET by default
#   [LIBS …]              linked privately, besides sandforge::sdk
#   [STATIC_RUNTIME]      the C++ runtime of the compiler becomes part of the plugin, so that it
#                         loads where that runtime is older or absent
#   [INSTALL])            install rule into SANDFORGE_PLUGIN_INSTALL_DIR (lib/sandforge/plugins)
#
# The plugin exports the entry symbol and nothing else, has no undefined symbol, is never
# unloaded, and is checked for all of that after each link: a plugin that fails is deleted. By
# hand, for any plugin: cmake -D PLUGIN=x.so -P SandforgeCheckPlugin.cmake

set(SANDFORGE_PLUGIN_ENTRY sandforge_plugin_entry_v1)
set(SANDFORGE_PLUGIN_MODULE_DIR ${CMAKE_CURRENT_LIST_DIR})
if(NOT SANDFORGE_PLUGIN_INSTALL_DIR)
  include(GNUInstallDirs)
  set(SANDFORGE_PLUGIN_INSTALL_DIR ${CMAKE_INSTALL_LIBDIR}/sandforge/plugins)
endif()

function(sandforge_add_plugin target)
  cmake_parse_arguments(P "INSTALL;STATIC_RUNTIME" "MANIFEST;OUTPUT_NAME" "SOURCES;LIBS" ${ARGN})
  if(P_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "sandforge_add_plugin(${target}): unknown arguments: ${P_UNPARSED_ARGUMENTS}")
  endif()
  foreach(needed SOURCES MANIFEST)
    if(NOT P_${needed})
      message(FATAL_ERROR "sandforge_add_plugin(${target}): ${needed} is missing")
    endif()
  endforeach()
  if(NOT P_OUTPUT_NAME)
    set(P_OUTPUT_NAME ${target})
  endif()
  get_filename_component(manifest ${P_MANIFEST} ABSOLUTE)

  # The manifest becomes a constant array of the language that the project has.
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(extension cpp)
  if(C IN_LIST languages)
    set(extension c)
  endif()
  set(embedded ${CMAKE_CURRENT_BINARY_DIR}/${target}_manifest.${extension})
  set(embed ${SANDFORGE_PLUGIN_MODULE_DIR}/SandforgeEmbedManifest.cmake)
  add_custom_command(OUTPUT ${embedded} VERBATIM DEPENDS ${manifest} ${embed}
    COMMENT "Embedding the manifest of ${target}"
    COMMAND ${CMAKE_COMMAND} -D "MANIFEST=${manifest}" -D "OUTPUT=${embedded}" -P ${embed})

  add_library(${target} MODULE ${P_SOURCES} ${embedded})
  target_link_libraries(${target} PRIVATE sandforge::sdk ${P_LIBS})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${P_OUTPUT_NAME}
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON)
  if(SANDFORGE_PLUGIN_OUTPUT_DIR)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${SANDFORGE_PLUGIN_OUTPUT_DIR})
  endif()
  if(TARGET sandforge_flags)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:sandforge_flags>)
  endif()
  if(UNIX AND NOT APPLE)
    _sandforge_plugin_link(${target} ${manifest} "${P_STATIC_RUNTIME}")
  endif()
  if(P_INSTALL)
    install(TARGETS ${target} COMPONENT sandforge_plugins
      LIBRARY DESTINATION ${SANDFORGE_PLUGIN_INSTALL_DIR})
  endif()
endfunction()

# Link options and the check after linking, for ELF.
function(_sandforge_plugin_link target manifest static_runtime)
  set(map ${SANDFORGE_PLUGIN_MODULE_DIR}/sandforge_plugin.map)
  target_link_options(${target} PRIVATE -Wl,--version-script=${map} -Wl,-z,nodelete)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS ${map})
  if(static_runtime)
    target_link_options(${target} PRIVATE -static-libgcc
      $<$<LINK_LANGUAGE:CXX>:-static-libstdc++>)
  endif()
  # clang leaves the symbols of its sanitizer runtimes to the program that loads the library.
  set(flags "${SANDFORGE_SANITIZE} ${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS}")
  if(NOT (flags MATCHES "-fsanitize|address|thread" AND
          "${CMAKE_C_COMPILER_ID} ${CMAKE_CXX_COMPILER_ID}" MATCHES "Clang"))
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  # A program of this machine; one for another could not be run.
  set(checker "")
  if(TARGET sandforge::check_manifest AND NOT CMAKE_CROSSCOMPILING)
    set(checker $<TARGET_FILE:sandforge::check_manifest>)
    add_dependencies(${target} sandforge::check_manifest)
  endif()
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -D "PLUGIN=$<TARGET_FILE:${target}>" -D "MANIFEST=${manifest}"
      -D "CHECKER=${checker}"
      -D "ENTRY=${SANDFORGE_PLUGIN_ENTRY}" -D "NM=${CMAKE_NM}" -D "READELF=${CMAKE_READELF}"
      -D "OBJCOPY=${CMAKE_OBJCOPY}" -D "STATIC_RUNTIME=${static_runtime}"
      -P ${SANDFORGE_PLUGIN_MODULE_DIR}/SandforgeCheckPlugin.cmake)
endfunction()
