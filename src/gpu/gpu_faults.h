/*
 * The XIDs of cards that have not been reset, in a file beside the state file, so that a restart of
 * the program does not forget them:
 *
 *     cardpack-faults 1 4a94e5a1-1d3c-4d0d-a5f3-3e0c8c7c0c11
 *     GPU-8a12... 79
 *
 * The ID of the boot, as a reboot resets all cards; then one line a card or slice: UUID and XID.
 * Empty: there is none. An administrator may remove the line of a card that was reset while the
 * program did not run. Its count of uncorrected errors proves nothing: without a program that has
 * the card open, the driver may begin to count anew.
 */
#pragma once

#include "base/buf.h"
#include "gpu/gpu_list.h"

/* proc: "/proc". In *out, an empty buf, its first line. */
void gpu_faults_boot(const char *proc, struct buf *out);

/* Gives the cards of the list the faults that the file has, if it is of this boot. Lines that are
 * not understood, and cards that are not in the list, are skipped. */
void gpu_faults_load(const char *path, struct str boot, struct gpu_list *l, uint64_t now_ms);

/* The file's content, in an empty buf. */
void gpu_faults_write(const struct gpu_list *l, struct str boot, struct buf *out);
