/* A system that refuses: threads beyond OCTET_TEST_THREADS, the OCTET_TEST_RENAME-th rename, and
 * every write to a file from the OCTET_TEST_FULL-th on, which is half done first, as on a full
 * disk. Before the OCTET_TEST_SIGNAL_AT-th rename, or the OCTET_TEST_SIGNAL_AT_WRITE-th write, the
 * process gets OCTET_TEST_SIGNAL. Preloaded, so that the command under test is the one that ships,
 * whoever runs the test (root has no limit of processes). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int number(const char* name, int otherwise) {
  const char* text = getenv(name);
  return text == NULL ? otherwise : atoi(text);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  static atomic_int created;
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (atomic_fetch_add(&created, 1) >= number("OCTET_TEST_THREADS", 1 << 20)) return EAGAIN;
  *(void**)&create = dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, body, argument);
}

/* Whether this one, of either kind, is to fail. */
static int refused(void) {
  static atomic_int renamed;
  const int now = atomic_fetch_add(&renamed, 1) + 1;
  const int signal_number = number("OCTET_TEST_SIGNAL", 0);
  if (signal_number != 0 && now == number("OCTET_TEST_SIGNAL_AT", 0)) {
    kill(getpid(), signal_number);
    usleep(100000); /* what waits for it has had its time */
  }
  if (now != number("OCTET_TEST_RENAME", 0)) return 0;
  errno = EPERM;
  return 1;
}

int rename(const char* from, const char* to) {
  int (*change)(const char*, const char*);
  if (refused()) return -1;
  *(void**)&change = dlsym(RTLD_NEXT, "rename");
  return change(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  int (*change)(int, const char*, int, const char*, unsigned);
  if (getenv("OCTET_TEST_NO_EXCHANGE") != NULL) {
    errno = EINVAL;
    return -1;
  }
  if (refused()) return -1;
  *(void**)&change = dlsym(RTLD_NEXT, "renameat2");
  return change(from_folder, from, to_folder, to, flags);
}

static ssize_t write_at(const char* symbol, int file, const void* data, size_t bytes,
                        off_t offset) {
  static atomic_int written;
  const int now = atomic_fetch_add(&written, 1) + 1;
  if (now == number("OCTET_TEST_SIGNAL_AT_WRITE", 0)) {
    kill(getpid(), number("OCTET_TEST_SIGNAL", 0));
    usleep(100000); /* what waits for it has had its time */
  }
  const int full = number("OCTET_TEST_FULL", 1 << 30);
  if (now > full || (now == full && bytes < 2)) {
    errno = ENOSPC;
    return -1;
  }
  ssize_t (*write)(int, const void*, size_t, off_t);
  *(void**)&write = dlsym(RTLD_NEXT, symbol);
  return write(file, data, now == full ? bytes / 2 : bytes, offset);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  return write_at("pwrite", file, data, bytes, offset);
}

ssize_t pwrite64(int file, const void* data, size_t bytes, off_t offset) {
  return write_at("pwrite64", file, data, bytes, offset);
}
