/*
 * Who can reach the port can bind pods, so what the settings of the port mean together is checked
 * before anything listens: there is no combination that is less secure than it reads.
 */
#include "config_table.h"

enum errc config_check_port(const struct config *c, struct err *reterr)
{
    if (config_address_is_loopback(c->listen_address) || c->allow_plain_http)
        return OK;
    return err_set(reterr, ERR_DENIED,
                   "listen-address (%s: \"%.*s\") is not loopback, and the port speaks plain HTTP: "
                   "set allow-plain-http where whoever reaches the port may bind pods",
                   config_source_name(c->sources[CONFIG_ROW_listen_address]),
                   STR_ARG(c->listen_address));
}
