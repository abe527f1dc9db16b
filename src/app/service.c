#include "service.h"

bool service_ready(const struct service *s, struct str *ret_missing)
{
    if (s->draining) {
        *ret_missing = STR("it is shutting down");
        return false;
    }
    return s->backend->ready(s->backend, ret_missing);
}
