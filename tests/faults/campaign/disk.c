/* A disk that fails and a clock that jumps, on demand: preloaded into the monitor.
 *
 * The file named by DISK_FAULTS says what happens, and is read at every call: "EIO 20" fails one call of five, "ENOSPC 100"
 * each write, "SLOW 50" makes half of the calls take 50 ms; without the file nothing happens. Only the store is hit.
 * The file named by CLOCK_OFFSET holds eight bytes: the seconds by which the wall clock is off. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static unsigned int dice = 4711;

static int fault(int fd, int writes) {
  const char *control = getenv("DISK_FAULTS");
  char link[64], path[4096], order[32] = {0};
  if (control == NULL) return 0;
  int file = (int)syscall(SYS_openat, AT_FDCWD, control, O_RDONLY);
  if (file < 0) return 0;
  ssize_t got = syscall(SYS_read, file, order, sizeof order - 1);
  syscall(SYS_close, file);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (got <= 0 || length <= 0) return 0;
  path[length] = 0;
  if (strstr(path, "state.sqlite") == NULL) return 0;
  char kind[16] = {0};
  int share = 0;
  if (sscanf(order, "%15s %d", kind, &share) != 2 || rand_r(&dice) % 100 >= share) return 0;
  if (strcmp(kind, "EIO") == 0) return EIO;
  if (strcmp(kind, "ENOSPC") == 0) return writes ? ENOSPC : 0;
  if (strcmp(kind, "SLOW") == 0) usleep(50000);
  return 0;
}

static volatile const long long *offset = NULL;

__attribute__((constructor)) static void map_offset(void) {
  const char *name = getenv("CLOCK_OFFSET");
  int file = name == NULL ? -1 : (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY);
  if (file < 0) return;
  void *mapped = mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) offset = mapped;
  syscall(SYS_close, file);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define TRY(fd, writes) do { int error = fault(fd, writes); if (error) { errno = error; return -1; } } while (0)

ssize_t write(int fd, const void *data, size_t size) { TRY(fd, 1); return REAL(write)(fd, data, size); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { TRY(fd, 1); return REAL(pwrite)(fd, data, size, at); }
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { TRY(fd, 1); return REAL(pwrite64)(fd, data, size, at); }
ssize_t pread(int fd, void *data, size_t size, off_t at) { TRY(fd, 0); return REAL(pread)(fd, data, size, at); }
ssize_t pread64(int fd, void *data, size_t size, off64_t at) { TRY(fd, 0); return REAL(pread64)(fd, data, size, at); }
int fsync(int fd) { TRY(fd, 1); return REAL(fsync)(fd); }
int fdatasync(int fd) { TRY(fd, 1); return REAL(fdatasync)(fd); }

int clock_gettime(clockid_t clock, struct timespec *at) {
  static __typeof__(&clock_gettime) real = NULL;
  if (real == NULL) real = REAL(clock_gettime);
  int failed = real(clock, at);
  if (failed == 0 && clock == CLOCK_REALTIME && offset != NULL) at->tv_sec += *offset;
  return failed;
}
