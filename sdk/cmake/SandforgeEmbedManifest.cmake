# Writes OUTPUT, a C or C++ source whose only content is the bytes of MANIFEST in the section
# .sandforge.manifest. An array rather than .incbin: compilers, caches and link-time optimisation
# all see the bytes.
cmake_minimum_required(VERSION 3.25)

file(READ ${MANIFEST} text)
string(JSON kind ERROR_VARIABLE problem TYPE "${text}")
if(problem OR NOT kind STREQUAL "OBJECT")
  message(NOTICE "error: ${MANIFEST}: not a JSON object: ${problem}")
  message(FATAL_ERROR "The manifest was refused.")
endif()
file(READ ${MANIFEST} hex HEX)
string(LENGTH "${hex}" digits)
if(digits GREATER 2097152)
  message(FATAL_ERROR "The manifest is larger than 1 MiB.")
endif()
string(REGEX REPLACE "(................................)" "\\1\n  " hex "${hex}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")

file(WRITE ${OUTPUT} "/* Generated from the manifest. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define SANDFORGE_RETAIN __attribute__((retain))
#endif
#endif
#ifndef SANDFORGE_RETAIN
#define SANDFORGE_RETAIN
#endif
/* `used` keeps it through the compiler, `retain` through a linker that collects sections. */
SANDFORGE_RETAIN __attribute__((used, section(\".sandforge.manifest\"), aligned(1)))
static const unsigned char sandforge_manifest[] = {
  ${bytes}
};
")
