# Install rules and the CMake packages of the whole tree. Included last, because it looks at the
# targets that exist. Not installed itself.
#
#   sandforge-sdk   sandforge::sdk, sandforge::support, sandforge::testing, sandforge_add_plugin()
#   sandforge       sandforge::core, sandforge::conformance (finds sandforge-sdk by itself)
include(CMakePackageConfigHelpers)

set(SANDFORGE_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake)

# Packages that exported targets need on the user's machine, by the first part of a target's name.
set(SANDFORGE_PACKAGE_OF_Threads Threads)
set(SANDFORGE_PACKAGE_OF_OpenSSL OpenSSL)
set(SANDFORGE_PACKAGE_OF_SQLite SQLite3)
set(SANDFORGE_PACKAGE_OF_Boost "Boost 1.81")
set(SANDFORGE_PACKAGE_OF_fmt fmt)
set(SANDFORGE_PACKAGE_OF_yaml-cpp yaml-cpp)
# Headers only: of no use to who links the archive.
set(SANDFORGE_HEADERS_ONLY valijson Boost::headers Boost::boost CLI11::CLI11 RapidJSON rapidjson)

# The target of this tree behind a link item, empty for all others.
function(_sandforge_real item out)
  set(${out} "" PARENT_SCOPE)
  if(TARGET "${item}")
    get_target_property(aliased ${item} ALIASED_TARGET)
    if(aliased)
      set(item ${aliased})
    endif()
    set(${out} ${item} PARENT_SCOPE)
  endif()
endfunction()

# Appends the package that brings an imported target; those are not visible here, so by name.
function(_sandforge_find_package target name packages)
  string(REGEX REPLACE "::.*" "" family "${name}")
  if(name MATCHES "^PkgConfig::(.*)$")
    list(APPEND ${packages} "${name}=${${CMAKE_MATCH_1}_MODULE_NAME}")
  elseif(SANDFORGE_PACKAGE_OF_${family})
    list(APPEND ${packages} ${SANDFORGE_PACKAGE_OF_${family}})
  elseif(name MATCHES "^[^$]*::")
    message(FATAL_ERROR "${target} links ${name}: SandforgeInstall.cmake does not know its package")
  endif()
  set(${packages} ${${packages}} PARENT_SCOPE)
endfunction()

# Makes TARGET fit for export: our own flags and private headers are dropped from its interface,
# archives of this tree that it needs are appended to ARCHIVES, packages to PACKAGES.
function(_sandforge_prepare target archives packages)
  get_target_property(items ${target} INTERFACE_LINK_LIBRARIES)
  if(NOT items)
    return()
  endif()
  set(kept "")
  foreach(item IN LISTS items)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" name "${item}")
    _sandforge_real("${name}" real)
    if(real STREQUAL "sandforge_flags" OR (NOT name STREQUAL item AND name IN_LIST SANDFORGE_HEADERS_ONLY))
      list(APPEND kept $<BUILD_INTERFACE:${item}>)
      continue()
    endif()
    list(APPEND kept ${item})
    if(NOT real)
      _sandforge_find_package(${target} "${name}" ${packages})
    elseif(NOT real IN_LIST ${archives})
      list(APPEND ${archives} ${real})
      _sandforge_prepare(${real} ${archives} ${packages})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${kept}")
  list(REMOVE_DUPLICATES ${packages})
  set(${archives} ${${archives}} PARENT_SCOPE)
  set(${packages} ${${packages}} PARENT_SCOPE)
endfunction()

# Installs targets as one CMake package: sandforge_package(NAME PACKAGES … TARGETS …).
function(_sandforge_package name)
  cmake_parse_arguments(P "" "" "PACKAGES;TARGETS" ${ARGN})
  foreach(target IN LISTS P_TARGETS)
    string(REGEX REPLACE "^sandforge_" "" short ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${short})
  endforeach()
  install(TARGETS ${P_TARGETS} EXPORT ${name}-targets COMPONENT ${name}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${name}-targets NAMESPACE sandforge:: COMPONENT ${name}
    DESTINATION ${SANDFORGE_CMAKE_DIR}/${name})

  set(SANDFORGE_DEPENDENCIES "")
  foreach(package IN LISTS P_PACKAGES)
    if(package MATCHES "^PkgConfig::(.*)=(.*)$")
      string(APPEND SANDFORGE_DEPENDENCIES "find_dependency(PkgConfig)\n"
        "if(NOT TARGET PkgConfig::${CMAKE_MATCH_1})\n"
        "  pkg_check_modules(${CMAKE_MATCH_1} REQUIRED IMPORTED_TARGET ${CMAKE_MATCH_2})\nendif()\n")
    else()
      string(APPEND SANDFORGE_DEPENDENCIES "find_dependency(${package})\n")
    endif()
  endforeach()
  set(config ${PROJECT_BINARY_DIR}/packages/${name}-config.cmake)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/sdk/cmake/${name}-config.cmake.in ${config}
    INSTALL_DESTINATION ${SANDFORGE_CMAKE_DIR}/${name})
  set(version ${PROJECT_BINARY_DIR}/packages/${name}-config-version.cmake)
  # Before 1.0 a minor version may break what was there.
  write_basic_package_version_file(${version} COMPATIBILITY SameMinorVersion)
  install(FILES ${config} ${version} COMPONENT ${name}
    DESTINATION ${SANDFORGE_CMAKE_DIR}/${name})
endfunction()

# sandforge-sdk
set(sdk_targets sandforge_sdk sandforge_testing)
if(TARGET sandforge_check_manifest)
  list(APPEND sdk_targets sandforge_check_manifest)
endif()
if(TARGET sandforge_support)
  list(APPEND sdk_targets sandforge_support)
endif()
set(sdk_archives ${sdk_targets})
set(sdk_packages "")
foreach(target IN LISTS sdk_targets)
  _sandforge_prepare(${target} sdk_archives sdk_packages)
endforeach()
_sandforge_package(sandforge-sdk TARGETS ${sdk_archives} PACKAGES ${sdk_packages})
foreach(dir sdk/include sdk/support/include)
  if(EXISTS ${PROJECT_SOURCE_DIR}/${dir})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${dir}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
      COMPONENT sandforge-sdk FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  endif()
endforeach()
set(module_dir ${PROJECT_SOURCE_DIR}/sdk/cmake)
install(FILES ${module_dir}/SandforgePlugin.cmake ${module_dir}/SandforgeEmbedManifest.cmake
  ${module_dir}/SandforgeCheckPlugin.cmake ${module_dir}/sandforge_plugin.map
  DESTINATION ${SANDFORGE_CMAKE_DIR}/sandforge-sdk COMPONENT sandforge-sdk)

# The cases of the conformance suite: to read, and as a pattern for cases of one's own.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sdk/conformance/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/sandforge/conformance COMPONENT sandforge-sdk
  FILES_MATCHING PATTERN "*.json" PATTERN "README.md")

# sandforge: core and the conformance suite, and the archives of this tree that they are made of
if(TARGET sandforge::core)
  _sandforge_real(sandforge::core core)
  set(core_archives ${sdk_archives} ${core} sandforge_conformance)
  set(core_packages "")
  _sandforge_prepare(${core} core_archives core_packages)
  _sandforge_prepare(sandforge_conformance core_archives core_packages)
  list(REMOVE_ITEM core_archives ${sdk_archives})
  _sandforge_package(sandforge TARGETS ${core_archives} PACKAGES ${core_packages})
  foreach(dir core/include hosts/conformance/include)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${dir}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
      COMPONENT sandforge FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
  endforeach()
endif()
