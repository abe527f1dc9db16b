/* The syntax once more, over the byte loop that targets without SSE2 get. */
#define JSCAN_PORTABLE

#include "../../src/codec/jread.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../src/codec/jskim.c" /* NOLINT(bugprone-suspicious-include) */
#include "test_jread_syntax.c"     /* NOLINT(bugprone-suspicious-include) */
