/* Preloaded into a server by test_trouble.py: makes writing or syncing of the ledger fail as a disk would.

   The first byte of the file that FAILING_DISK names says what fails: w writes (disk full), r opening for writing and
   writes (read-only), s syncs (the disk is broken). Nothing fails while it is empty or missing. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char trouble(void) {
    const char *path = getenv("FAILING_DISK");
    char found = 0;
    int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) : -1;
    if (fd >= 0) {
        if (syscall(SYS_read, fd, &found, 1) != 1) found = 0;
        syscall(SYS_close, fd);
    }
    return found;
}

static int is_ledger(int fd) {
    char link[64], name[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0) return 0;
    name[length] = 0;
    return strstr(name, "ledger.sqlite") != NULL;
}

static int write_fails(int fd) {
    char now = trouble();
    if ((now != 'w' && now != 'r') || !is_ledger(fd)) return 0;
    errno = now == 'w' ? ENOSPC : EROFS;
    return 1;
}

static int sync_fails(int fd) {
    if (trouble() != 's' || !is_ledger(fd)) return 0;
    errno = EIO;
    return 1;
}

ssize_t write(int fd, const void *data, size_t size) {
    return write_fails(fd) ? -1 : syscall(SYS_write, fd, data, size);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return write_fails(fd) ? -1 : syscall(SYS_pwrite64, fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }

int fsync(int fd) { return sync_fails(fd) ? -1 : (int)syscall(SYS_fsync, fd); }

int fdatasync(int fd) { return sync_fails(fd) ? -1 : (int)syscall(SYS_fdatasync, fd); }
