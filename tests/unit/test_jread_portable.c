/* The syntax tests again, with the byte loop for targets without SSE2. */
#define JSCAN_PORTABLE

#include "../../src/json/jread.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../src/json/jskim.c" /* NOLINT(bugprone-suspicious-include) */
#include "test_jread_syntax.c"    /* NOLINT(bugprone-suspicious-include) */
