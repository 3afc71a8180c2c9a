#include "sandforge/support/json.hpp"
