// The C++ layer for authors of provider plugins: everything of it. C++17; with C++20 also the
// coroutine style.
//
// Start with factory.hpp (the provider) and sandbox.hpp (the sandbox); sdk/examples/minimal_cpp is
// a whole plugin. sdk/ABI.md tells what the layer does for you.
#pragma once

#include "export.hpp"
