#include "sandforge/wire/guest/client.hpp"
