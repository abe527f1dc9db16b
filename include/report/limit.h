/* The limits of report, each with the reason for its number. */
#pragma once

#include "base/limit.h"

/* Columns of a table for people: no more cards of a node than a person scrolls through. */
#define LIMIT_TABLE_COLUMNS 80
