/* Compares the container's ID in /proc/PID/cgroup with what regular expressions find. */
#include "node/containers/cgroup.h"
#include "rules.h"

#include <regex.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEX "([0-9a-f]{64})"

static const char *const forms[] = {
    "^" HEX "$",
    "^cri-containerd-" HEX "\\.scope$",
    "^crio-" HEX "\\.scope$",
    "^docker-" HEX "\\.scope$",
    "^crio-" HEX "$",
    ":cri-containerd:" HEX "$",
};

static struct str in_name(struct str name)
{
    char z[4097];
    if (name.n >= sizeof(z))
        return STR_NULL;
    memcpy(z, name.p, name.n);
    z[name.n] = '\0';
    static regex_t compiled[COUNT_OF(forms)];
    static bool ready;
    for (size_t i = 0; i < COUNT_OF(forms) && !ready; i++)
        check(regcomp(&compiled[i], forms[i], REG_EXTENDED) == 0, "a valid expression");
    ready = true;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        regmatch_t m[2];
        if (regexec(&compiled[i], z, 2, m, 0) == 0)
            return (struct str){name.p + m[1].rm_so, (size_t)(m[1].rm_eo - m[1].rm_so)};
    }
    return STR_NULL;
}

/* The first name of the path that has one. */
static struct str in_line(const char *line, const char *end)
{
    const char *first = memchr(line, ':', (size_t)(end - line));
    const char *second = first == NULL ? NULL : memchr(first + 1, ':', (size_t)(end - first) - 1);
    if (second == NULL || second + 1 == end || second[1] != '/')
        return STR_NULL;
    for (const char *at = second + 1; at < end;) {
        const char *slash = memchr(at, '/', (size_t)(end - at));
        const char *to = slash == NULL ? end : slash;
        struct str id = in_name((struct str){at, (size_t)(to - at)});
        if (id.p != NULL)
            return id;
        at = to + 1;
    }
    return STR_NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = text + size;
    struct str found = STR_NULL;
    bool several = false;
    if (size == 0 || size > 4096 || memchr(data, '\0', size) != NULL)
        return 0;
    for (const char *line = text; line < end;) {
        const char *to = memchr(line, '\n', (size_t)(end - line));
        to = to == NULL ? end : to;
        struct str id = in_line(line, to);
        several = several || (id.p != NULL && found.p != NULL && !str_eq(id, found));
        found = id.p == NULL ? found : id;
        line = to + 1;
    }
    struct str ours = cgroup_text_id((struct str){text, size});
    check((ours.p == NULL) == (several || found.p == NULL), "an ID where there is one");
    check(ours.p == NULL || (cgroup_is_id(ours) && str_eq(ours, found)), "the same ID");
    return 0;
}
