#include "sandforge/wire/guest/frame.hpp"
