/*
 * What needs a socket of its own, or says who this replica is, waits for a restart. TLS and who is
 * asked for a certificate or token are on or off for as long as the port is open: a connection that
 * came before would be of neither kind. Since they are, and the address stays, what both
 * configurations are together is as secure as each of them was found to be.
 */
#include "config_reload.h"

#include "config_table.h"

static const enum config_change changes[CONFIG_ROW_COUNT] = {
    [CONFIG_ROW_tls_cert_file] = CONFIG_FILE,      [CONFIG_ROW_tls_key_file] = CONFIG_FILE,
    [CONFIG_ROW_client_ca_file] = CONFIG_FILE,     [CONFIG_ROW_client_names] = CONFIG_FILE,
    [CONFIG_ROW_token_file] = CONFIG_FILE,         [CONFIG_ROW_log_level] = CONFIG_LIVE,
    [CONFIG_ROW_log_format] = CONFIG_LIVE,         [CONFIG_ROW_max_body] = CONFIG_LIVE,
    [CONFIG_ROW_request_timeout_ms] = CONFIG_LIVE, [CONFIG_ROW_bind_timeout_ms] = CONFIG_LIVE,
    [CONFIG_ROW_list_page_size] = CONFIG_LIVE,     [CONFIG_ROW_start_settle_ms] = CONFIG_LIVE,
    [CONFIG_ROW_shrink_after_init] = CONFIG_LIVE,  [CONFIG_ROW_node_policy] = CONFIG_LIVE,
    [CONFIG_ROW_card_policy] = CONFIG_LIVE,        [CONFIG_ROW_shortlist] = CONFIG_LIVE,
    [CONFIG_ROW_evict_for_cards] = CONFIG_LIVE,    [CONFIG_ROW_evict_after_ms] = CONFIG_LIVE,
    [CONFIG_ROW_evict_keep_ms] = CONFIG_LIVE,      [CONFIG_ROW_shutdown_grace_ms] = CONFIG_LIVE,
    [CONFIG_ROW_shutdown_delay_ms] = CONFIG_LIVE,  [CONFIG_ROW_metrics_nodes] = CONFIG_LIVE,
};

enum config_change config_change_of(enum config_row row)
{
    return changes[row];
}

const char *config_change_name(enum config_change change)
{
    switch (change) {
    case CONFIG_RESTART:
        return "restart";
    case CONFIG_FILE:
        return "file";
    case CONFIG_LIVE:
        return "live";
    }
    return "";
}

static enum config_verdict judge(enum config_row row, struct config_value was,
                                 struct config_value is)
{
    if (was.number == is.number && str_eq(was.text, is.text))
        return CONFIG_SAME;
    if (changes[row] == CONFIG_FILE)
        return was.text.n > 0 && is.text.n > 0 ? CONFIG_CHANGES : CONFIG_WAITS;
    return changes[row] == CONFIG_LIVE ? CONFIG_CHANGES : CONFIG_WAITS;
}

enum errc config_merge(const struct config *running, struct config *fresh, struct config_merge *ret,
                       struct err *reterr)
{
    *ret = (struct config_merge){.changes = 0};
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        enum config_row row = (enum config_row)i;
        struct config_value was = config_get(running, row);
        ret->asked[row] = config_get(fresh, row);
        ret->verdicts[row] = judge(row, was, ret->asked[row]);
        ret->changes += ret->verdicts[row] == CONFIG_CHANGES ? 1 : 0;
        if (ret->verdicts[row] != CONFIG_WAITS)
            continue;
        ret->waits++;
        was.text = arena_dup(&fresh->arena, was.text); /* it goes with the running one */
        config_put(fresh, row, &was);
        ret->sources[row] = fresh->sources[row];
        fresh->sources[row] = running->sources[row];
    }
    if (arena_failed(&fresh->arena))
        return err_set(reterr, arena_fault(&fresh->arena), "no room for the configuration");
    return config_check_port(fresh, reterr);
}
