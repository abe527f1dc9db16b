/* Writes the quotas of namespaces and their usage as JSON, for the page. */
#pragma once

#include "core/quota.h"
#include "json/jwrite.h"

/* Checked before each namespace, so it may be exceeded by the limits of one. */
#define UI_QUOTA_BYTES (size_t)(32 * KIB)

/*
 * {"namespaces":[{"name":"a","limits":[{"kind":"memory","pool":"gold","used":30,"limit":32}]}],
 * "total":N}: the namespaces with limits, by name, at most LIMIT_UI_QUOTAS and UI_QUOTA_BYTES;
 * total counts all of them. A limit has "pool" or "model" if it is of a pool or of a model.
 */
void ui_quota_write(struct jwrite *w, const struct quota *q);
