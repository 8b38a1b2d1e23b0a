/* A disk that fails when it is told to: loaded before libc, it refuses a process's writes or syncs.

   The one rule: it fails as a disk does, by the system call's result, and only while the files stand in the folder
   that FAULTY_DISK names:
       full   writes, truncations and allocations find no room (ENOSPC)
       sync   syncs fail (EIO)
   Built and used by disks.py. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

static int is_told(const char *name) {
    const char *folder = getenv("FAULTY_DISK");
    char path[4096];
    int before = errno;
    int found;

    if (folder == NULL) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    found = access(path, F_OK) == 0;
    errno = before;
    return found;
}

#define WRITE(name, arguments, passed)                                   \
    ssize_t name arguments {                                             \
        static ssize_t (*real) arguments;                                \
        if (real == NULL) real = (ssize_t(*) arguments)dlsym(RTLD_NEXT, #name); \
        if (is_told("full")) {                                           \
            errno = ENOSPC;                                              \
            return -1;                                                   \
        }                                                                \
        return real passed;                                              \
    }

#define CALL(name, told, error, arguments, passed)                       \
    int name arguments {                                                 \
        static int (*real) arguments;                                    \
        if (real == NULL) real = (int (*) arguments)dlsym(RTLD_NEXT, #name); \
        if (is_told(told)) {                                             \
            errno = error;                                               \
            return -1;                                                   \
        }                                                                \
        return real passed;                                              \
    }

WRITE(pwrite, (int file, const void *bytes, size_t count, off_t at), (file, bytes, count, at))
WRITE(pwrite64, (int file, const void *bytes, size_t count, off64_t at), (file, bytes, count, at))
WRITE(pwritev, (int file, const struct iovec *parts, int count, off_t at), (file, parts, count, at))
WRITE(pwritev64, (int file, const struct iovec *parts, int count, off64_t at), (file, parts, count, at))
CALL(ftruncate, "full", ENOSPC, (int file, off_t size), (file, size))
CALL(ftruncate64, "full", ENOSPC, (int file, off64_t size), (file, size))
CALL(fsync, "sync", EIO, (int file), (file))
CALL(fdatasync, "sync", EIO, (int file), (file))
