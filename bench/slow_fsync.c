/* A disk whose fsync takes long: preloaded into a process, it sleeps SLOW_FSYNC_MS after each sync that worked.
 * Built by bench/slow_fsync.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int (*sync_call)(int);

static void pause_as_told(void) {
    const char *milliseconds_text = getenv("SLOW_FSYNC_MS");
    long milliseconds = milliseconds_text ? atol(milliseconds_text) : 0;
    struct timespec rest = {milliseconds / 1000, (milliseconds % 1000) * 1000000L};
    while (nanosleep(&rest, &rest) != 0) {
    }
}

static int slowly(const char *name, int descriptor) {
    sync_call real = (sync_call)dlsym(RTLD_NEXT, name);
    int result = real(descriptor);
    if (result == 0)
        pause_as_told();
    return result;
}

int fsync(int descriptor) { return slowly("fsync", descriptor); }
int fdatasync(int descriptor) { return slowly("fdatasync", descriptor); }
