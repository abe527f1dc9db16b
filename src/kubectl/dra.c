/* Asks for the group itself, which each user may read. */
#include "kubectl/dra.h"

enum errc kubectl_dra_is_served(struct kubectl_client *c, bool *ret, struct err *reterr)
{
    enum errc code =
        kubectl_client_call(c, "GET", STR("/apis/resource.k8s.io/v1"), STR_NULL, reterr);
    if (code == OK)
        *ret = kubectl_client_status(c) != 404;
    return code;
}
