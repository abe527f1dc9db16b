/* Durations, sizes, words, names and addresses as settings and flags have them. What is printed
 * reads back as the same value. */
#pragma once

#include "base/buf.h"

/* "30s", "1m30s", "500ms", "0": in ms. False: not a duration, or beyond 64 bits. */
bool value_read_duration(struct str text, uint64_t *ret_ms);

/* "32MiB", "64KiB", "1GiB", "4096": in bytes. False: not a size, or beyond 64 bits. */
bool value_read_size(struct str text, uint64_t *ret_bytes);

void value_put_duration(struct buf *out, uint64_t ms);
void value_put_size(struct buf *out, uint64_t bytes);

/* One word of a list such as "auto|on|off": its index. False: text is none of them. */
bool value_read_word(struct str text, const char *words, unsigned *ret);

/* The word with that index, which the list must have. */
struct str value_word(const char *words, unsigned i);

/* For an error: "auto, on or off". */
void value_put_words(struct buf *out, const char *words);

/* Whether text is a DNS subdomain of any length, as names of Kubernetes' objects are. */
bool value_is_dns_name(struct str text);

/* The family of an IPv4 or IPv6 address, with its bytes in ret; 0: text is not an address. */
int value_read_address(struct str text, unsigned char ret[static 16]);

/* Whether text is an address that only this machine can reach. */
bool value_is_loopback(struct str text);
