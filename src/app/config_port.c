/*
 * Who can reach the port can bind pods, so what the settings of the port mean together is checked
 * before anything listens: there is no combination that is less secure than it reads.
 */
#include "config_table.h"

/* A row that is nothing without another. */
static const struct {
    enum config_row row;
    enum config_row wants;
} wants[] = {
    {CONFIG_ROW_tls_cert_file, CONFIG_ROW_tls_key_file},
    {CONFIG_ROW_tls_key_file, CONFIG_ROW_tls_cert_file},
    {CONFIG_ROW_client_ca_file, CONFIG_ROW_tls_cert_file},
    {CONFIG_ROW_client_names, CONFIG_ROW_client_ca_file},
};

enum errc config_check_port(const struct config *c, struct err *reterr)
{
    for (size_t i = 0; i < COUNT_OF(wants); i++) {
        struct str text = config_get(c, wants[i].row).text;
        if (text.n > 0 && config_get(c, wants[i].wants).text.n == 0)
            return err_set(reterr, ERR_CONFLICT, "%s (%s: \"%.*s\") wants %s, which is not set",
                           config_table[wants[i].row].name,
                           config_source_name(c->sources[wants[i].row]), STR_ARG(text),
                           config_table[wants[i].wants].name);
    }
    if (c->token_file.n > 0 && c->tls_cert_file.n == 0 &&
        !config_address_is_loopback(c->listen_address))
        return err_set(reterr, ERR_CONFLICT,
                       "token-file (%s: \"%.*s\") wants tls-cert-file where listen-address "
                       "(\"%.*s\") is not loopback: the token would travel in the clear",
                       config_source_name(c->sources[CONFIG_ROW_token_file]),
                       STR_ARG(c->token_file), STR_ARG(c->listen_address));
    if (c->tls_cert_file.n > 0 || c->allow_plain_http ||
        config_address_is_loopback(c->listen_address))
        return OK;
    return err_set(reterr, ERR_DENIED,
                   "listen-address (%s: \"%.*s\") is not loopback, and the port speaks plain HTTP: "
                   "set tls-cert-file and tls-key-file, or allow-plain-http where whoever reaches "
                   "the port may bind pods",
                   config_source_name(c->sources[CONFIG_ROW_listen_address]),
                   STR_ARG(c->listen_address));
}
