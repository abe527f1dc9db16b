/*
 * Classifies the settings by when a change takes effect. Only what an operator changes under way
 * has code for that: the log level, and which clients may call. All else needs a restart. TLS,
 * client certificates and tokens each stay on or off while the port is open: otherwise older
 * connections would follow other rules than new ones. Since these and the address stay, the merged
 * configuration is as secure as each of the two.
 */
#include "daemon/config/config_reload.h"

#include "daemon/config/config_table.h"

static enum config_verdict config_reload_classify(enum config_row row, struct config_value was,
                                                  struct config_value is)
{
    if (was.number == is.number && str_eq(was.text, is.text))
        return CONFIG_SAME;
    if (config_change_of(row) == CONFIG_FILE)
        return was.text.n > 0 && is.text.n > 0 ? CONFIG_CHANGES : CONFIG_WAITS;
    return config_change_of(row) == CONFIG_LIVE ? CONFIG_CHANGES : CONFIG_WAITS;
}

enum errc config_merge(const struct config *running, struct config *fresh, struct config_merge *ret,
                       struct err *reterr)
{
    *ret = (struct config_merge){.changes = 0};
    for (size_t i = 0; i < CONFIG_ROW_COUNT; i++) {
        enum config_row row = (enum config_row)i;
        struct config_value was = config_get(running, row);
        ret->asked[row] = config_get(fresh, row);
        ret->verdicts[row] = config_reload_classify(row, was, ret->asked[row]);
        ret->changes += ret->verdicts[row] == CONFIG_CHANGES ? 1 : 0;
        if (ret->verdicts[row] != CONFIG_WAITS)
            continue;
        ret->waits++;
        was.text = arena_dup(&fresh->arena, was.text); /* outlives the strings of `running` */
        config_put(fresh, row, &was);
        ret->sources[row] = fresh->sources[row];
        fresh->sources[row] = running->sources[row];
    }
    if (arena_failed(&fresh->arena))
        return err_set(reterr, arena_fault(&fresh->arena), "no room for the configuration");
    return config_check_port(fresh, reterr);
}
