// Ctrl-C and its like: the first one asks, the second one ends.
#pragma once

#include <stop_token>

namespace sandforge::cli {

// Makes SIGINT, SIGTERM and SIGHUP a stop request. Before any other thread exists.
void watch_interrupts();
std::stop_token interrupt_token();
// The signal that came first; 0: none.
int interrupt_signal();
// Something else must end the command, such as a reader that is gone.
void request_interrupt();

}  // namespace sandforge::cli
