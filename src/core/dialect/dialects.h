/* The dialects, one file each. To add one, write its file, and name it here, in dialect.c and in
 * enum dialect. */
#pragma once

#include "core/dialect/dialect.h"

extern const struct dialect_facts dialect_gpushare;
extern const struct dialect_facts dialect_volcano;
extern const struct dialect_facts dialect_elastic;
extern const struct dialect_facts dialect_tencent;
extern const struct dialect_facts dialect_vgpu;
extern const struct dialect_facts dialect_hami;
