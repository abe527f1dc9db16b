/* CPU and memory of the nodes of cache_model.h, counted again for each question. */
#pragma once

#include "cache_model.h"

#include <stdio.h>

static inline struct host m_host_used(const struct model *m, int node)
{
    struct host sum = {0};
    for (int i = 0; i < M_PODS; i++) {
        const struct m_pod *p = &m->pods[i];
        if (m_holds(p) && p->node == node)
            host_charge(&sum, p->ask.host, 1);
        if (p->other && p->other_node == node)
            host_charge(&sum, p->other_host, 1);
    }
    return sum;
}

/* What is left of a size, if it is known. */
static inline int64_t m_left(const struct model *m, int node, int64_t size, int64_t used)
{
    return !m->nodes[node].size.present || size < 0 ? HOST_UNKNOWN
                                                    : MAX_OF(size - used, (int64_t)0);
}

static inline bool m_host_agrees(const struct model *m, int node, const struct node *n)
{
    struct host size = m->nodes[node].size.host;
    struct host used = m_host_used(m, node);
    struct host left = node_host_left(n);
    return host_equal(n->host_used, used) && left.cpu == m_left(m, node, size.cpu, used.cpu) &&
           left.memory == m_left(m, node, size.memory, used.memory);
}

/* The thousandths of a CPU as the API writes them; -1: absent, -2: not a quantity. */
static inline struct str m_cpu_text(char *to, size_t size, int64_t value)
{
    if (value == -1)
        return STR_NULL;
    int n = snprintf(to, size, "%lldm", (long long)value);
    return value == -2 ? STR("none") : (struct str){to, (size_t)n};
}

/* Often equal to that of another pod; rarely nothing, or more than any node has. dice: below 26. */
static inline struct host m_some_host(uint32_t dice)
{
    static const int64_t amounts[] = {0, 100, 250, 1000, 1000};
    if (dice == 25)
        return host_clamp((struct host){INT64_MAX, INT64_MAX});
    return (struct host){amounts[dice / 5], amounts[dice % 5]};
}
