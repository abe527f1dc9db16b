/* The values of the node label that says what the node enforces. */
#include "core/state/isolation.h"

static const char *const names[] = {
    [ISOLATION_UNKNOWN] = "",
    [ISOLATION_NONE] = "none",
    [ISOLATION_DRIVER_LIMITS] = "driver-limits",
    [ISOLATION_MPS] = "mps",
    [ISOLATION_MIG] = "mig",
};

bool isolation_parse(struct str text, enum isolation *ret)
{
    for (unsigned i = ISOLATION_NONE; i < COUNT_OF(names); i++) {
        if (str_eq(text, str_of(names[i]))) {
            *ret = (enum isolation)i;
            return true;
        }
    }
    return false;
}

const char *isolation_name(enum isolation i)
{
    assert((unsigned)i < COUNT_OF(names));
    return names[i];
}
