/* The limits of report, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Columns of a table for people: no more cards of a node than a person scrolls through. */
#define LIMIT_TABLE_COLUMNS 80

/* What evaluation_memo.h remembers. With 5,000 nodes a shape of request takes 80 KiB, so this is
 * enough for the latest fifty shapes; the rest of cardpack takes 25 MiB then. */
#define LIMIT_JUDGE_BYTES (4 * MIB)
