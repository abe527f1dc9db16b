/* Certificates that openssl makes at start, once for all tests of a program. */
#pragma once

#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * NAME.crt and NAME.key: two CAs, servers for 127.0.0.1, and clients: a valid one, one with a
 * server's certificate, one of the other CA and one that has expired. Also chain.crt with
 * chained.key: a server valid for 20 days, from an intermediate CA valid for one day.
 */
static const char certificates_script[] =
    "cd \"$1\" || exit 1\n"
    "ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1'\n"
    "ca() { openssl req -x509 $ec -nodes -days 2 -subj \"/CN=$1\" -keyout $1.key -out $1.crt; }\n"
    "leaf() { openssl req $ec -nodes -subj \"/O=test/CN=$1\" -keyout $1.key -out $1.csr &&"
    " printf 'extendedKeyUsage=%s\\n' \"$3\" > $1.ext &&"
    " { [ -z \"$2\" ] || echo \"subjectAltName=$2\" >> $1.ext; } &&"
    " openssl x509 -req -days \"$4\" -in $1.csr -extfile $1.ext -CA $5.crt -CAkey $5.key"
    " -CAcreateserial -out $1.crt; }\n"
    "{ ca ca && ca other &&"
    " leaf server IP:127.0.0.1 serverAuth 2 ca && leaf server2 IP:127.0.0.1 serverAuth 2 other &&"
    " leaf nameless '' serverAuth 2 ca && leaf client DNS:client.example clientAuth 2 ca &&"
    " leaf purpose DNS:purpose serverAuth 2 ca && leaf stranger DNS:stranger clientAuth 2 other &&"
    " leaf expired DNS:expired clientAuth -1 ca &&"
    " openssl req $ec -nodes -subj /CN=middle -keyout middle.key -out middle.csr &&"
    " echo basicConstraints=CA:TRUE > middle.ext &&"
    " openssl x509 -req -days 1 -in middle.csr -extfile middle.ext -CA ca.crt -CAkey ca.key"
    " -CAcreateserial -out middle.crt && leaf chained IP:127.0.0.1 serverAuth 20 middle &&"
    " cat chained.crt middle.crt > chain.crt &&"
    " openssl ec -in server.key -aes128 -passout pass:secret -out locked.key; } > log 2>&1\n";

static char certificates_folder[] = "/tmp/certificates.XXXXXX";

static inline void run_shell(const char *script, const char *folder)
{
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)execlp("sh", "sh", "-c", script, "sh", folder, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "%s: status %d", script, status);
}

/* Call it in main, outside of any test. False if it failed. */
static inline bool certificates_make(void)
{
    char command[4096];
    if (mkdtemp(certificates_folder) == NULL)
        return false;
    (void)snprintf(command, sizeof(command), "set -- '%s'\n%s", certificates_folder,
                   certificates_script);
    return system(command) == 0; /* NOLINT(cert-env33-c): a test's own script */
}

static inline void certificates_remove(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -r '%s'", certificates_folder);
    (void)!system(command); /* NOLINT(cert-env33-c) */
}

struct path {
    char text[128];
};

/* Sets the path of NAME in the folder; an empty name gives an empty path. */
static inline struct str path_set(struct path *p, const char *name)
{
    (void)snprintf(p->text, sizeof(p->text), "%s/%s", certificates_folder, name);
    return name[0] == '\0' ? STR_NULL : str_of(p->text);
}
