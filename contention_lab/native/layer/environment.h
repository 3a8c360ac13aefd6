/* The program's environment as it would be without us: our entry is taken out of LD_PRELOAD before the program
 * sees it, in place and without allocating. The program's own entries stay as they are.
 *
 * In a process that only passes the recording on to its children (a shell between two Pythons) it stays: the
 * Python takes it out itself, see capture/startup/sitecustomize.py.
 */
#ifndef CL_LAYER_ENVIRONMENT_H
#define CL_LAYER_ENVIRONMENT_H

#include <dlfcn.h>
#include <string.h>

#define CL_PRELOAD "LD_PRELOAD="
#define CL_INHERITED "CONTENTION_LAB_RECORD_ROLE=child"

/* `record` puts our entry first: alone where the program had none, else before a colon and the program's. 1 if
 * the variable was there without us. */
static int
cl_preload_restore(char *value, const char *ours)
{
    size_t length = strlen(ours);
    if (strncmp(value, ours, length) != 0 || (value[length] != ':' && value[length] != 0)) {
        return 1;
    }
    if (value[length] == 0) {
        return 0;
    }
    size_t rest = strlen(value + length + 1);
    memmove(value, value + length + 1, rest);
    memset(value + rest, 0, length + 1); /* also in /proc/self/environ */
    return 1;
}

static void
cl_environment_restore(char **environment)
{
    Dl_info us;
    if (environment == NULL || dladdr((const void *)&cl_environment_restore, &us) == 0
        || us.dli_fname == NULL) {
        return;
    }
    for (char **at = environment; *at != NULL; at++) {
        if (strcmp(*at, CL_INHERITED) == 0) {
            return;
        }
    }
    for (char **at = environment; *at != NULL;) {
        if (strncmp(*at, CL_PRELOAD, sizeof CL_PRELOAD - 1) == 0
            && !cl_preload_restore(*at + sizeof CL_PRELOAD - 1, us.dli_fname)) {
            memset(*at, 0, strlen(*at)); /* also in /proc/self/environ */
            for (char **next = at; *next != NULL; next++) {
                next[0] = next[1];
            }
        }
        else {
            at++;
        }
    }
}

#endif
