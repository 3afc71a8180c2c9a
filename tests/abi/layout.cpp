// The pins of layout.c hold for C++ as well.
#include "layout.c"
