/* The lock of a node: dialect_facts.lock. */
#pragma once

#include "core/request/object_views.h"

/* Reads "TIME", or "TIME,NAMESPACE,NAME". Absent: no lock. */
void lock_text_read(struct str text, struct lock_view *ret);
