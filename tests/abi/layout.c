/*
 * Pins the binary layout: every offset and size of layout.inc, on machines with 64-bit pointers and
 * longs. The same file is compiled as C11 and, through layout.cpp, as C++.
 */
#include <sandforge/wire/runner/all_headers.h>

#ifdef __cplusplus
#define SF_PIN static_assert
#define SF_ALIGN_OF alignof
#else
#include <assert.h>
#define SF_PIN _Static_assert
#define SF_ALIGN_OF _Alignof
#endif

#if defined(__LP64__)
#define SF_STRUCT(s, kind, size) SF_PIN(sizeof(s) == (size), #s);
#define SF_MEMBER(s, m, offset, size) \
  SF_PIN(offsetof(s, m) == (offset) && sizeof(((s*)0)->m) == (size), #s "." #m);
/* The last member ends where the struct ends: a reader can tell an appended one by the size. */
#define SF_STRUCT_END(s, last) \
  SF_PIN(offsetof(s, last) + sizeof(((s*)0)->last) == sizeof(s), #s " has tail padding");
#include <sandforge/wire/runner/layout.inc>
#undef SF_STRUCT
#undef SF_MEMBER
#undef SF_STRUCT_END
#endif

#define APPENDABLE(s) SF_PIN(offsetof(s, struct_size) == 0, #s);
#define FROZEN(s)
#define SF_STRUCT(s, kind, size) kind(s)
#define SF_MEMBER(s, m, offset, size)
#define SF_STRUCT_END(s, last)
#include <sandforge/wire/runner/layout.inc>

SF_PIN(sizeof(sf_status) == 4, "sf_status");
SF_PIN(SF_ALIGN_OF(sf_op) == SF_ALIGN_OF(void*), "objects start with their vtable");
