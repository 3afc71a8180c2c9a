#include "sandforge/wire/guest/messages.hpp"
