/* The main of a test that has none: the linker takes it from the library only then. */
#include "unit.h"

int main(void)
{
    return unit_run();
}
