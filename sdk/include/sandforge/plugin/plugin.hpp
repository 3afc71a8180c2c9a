// The C++ layer for authors of provider plugins: everything of it. C++17; with C++20 also the
// coroutine style.
//
// Start with factory.hpp (the provider) and sandbox.hpp (the sandbox), or with coroutine.hpp;
// sdk/examples/minimal_cpp and coroutine_cpp are whole plugins. sdk/ABI.md tells what the layer
// does for you.
#pragma once

#include "export.hpp"
#include "host_commands.hpp"
#include "http.hpp"
#include "repo_template.hpp"
#if defined(__cpp_impl_coroutine)
#include "coroutine.hpp"
#include "http_stream.hpp"
#include "repo_template_task.hpp"
#endif
