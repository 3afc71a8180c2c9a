#include "sandforge/yaml.hpp"
