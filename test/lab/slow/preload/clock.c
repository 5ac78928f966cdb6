/*
 * A clock that runs UNTHROTTLE_SLOW times slower for one process: QEMU's.
 *
 * QEMU reads the time by clock_gettime and gettimeofday, and sleeps in poll and ppoll. Elapsed time is divided by the
 * factor, and a timeout multiplied, so that the guest's timers agree with its clocks. The time stamp counter is not
 * slowed: the guest measures its rate against a slowed timer when it boots, and finds a faster counter.
 *
 * With UNTHROTTLE_STEADY each of QEMU's threads that emulates a CPU has a companion, which works while that CPU waits for
 * something to do (pthread_cond_wait). So as many threads as the guest has CPUs want the host's CPUs at any time, and
 * each emulated CPU gets the same part of them, whatever the others do. The threads are known by their names, which
 * QEMU gives them with -name debug-threads=on: "CPU 0/TCG".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL

static int (*real_clock_gettime)(clockid_t, struct timespec *);
static int (*real_ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
static int (*real_poll)(struct pollfd *, nfds_t, int);

static int64_t factor = 1;
static int64_t begun_ns[CLOCK_BOOTTIME + 1]; /* by clock */

static int64_t to_ns(const struct timespec *t)
{
	return t->tv_sec * NS_PER_S + t->tv_nsec;
}

static struct timespec from_ns(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S};
}

static int is_slowed(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME;
}

__attribute__((constructor)) static void begin(void)
{
	if (real_clock_gettime)
		return;
	real_ppoll = dlsym(RTLD_NEXT, "ppoll");
	real_poll = dlsym(RTLD_NEXT, "poll");
	real_clock_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	const char *said = getenv("UNTHROTTLE_SLOW");
	if (said && atoll(said) > 1)
		factor = atoll(said);
	for (clockid_t c = 0; c <= CLOCK_BOOTTIME; c++) {
		struct timespec now;
		if (is_slowed(c) && real_clock_gettime(c, &now) == 0)
			begun_ns[c] = to_ns(&now);
	}
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	begin();
	int result = real_clock_gettime(clock, t);
	if (result == 0 && is_slowed(clock))
		*t = from_ns(begun_ns[clock] + (to_ns(t) - begun_ns[clock]) / factor);
	return result;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	(void)zone;
	struct timespec t;
	int result = clock_gettime(CLOCK_REALTIME, &t);
	if (result == 0)
		*tv = (struct timeval){.tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000};
	return result;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
	begin();
	struct timespec longer;
	if (timeout) {
		longer = from_ns(to_ns(timeout) > INT64_MAX / factor ? INT64_MAX : to_ns(timeout) * factor);
		timeout = &longer;
	}
	return real_ppoll(fds, n, timeout, mask);
}

int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	begin();
	if (timeout_ms > 0)
		timeout_ms = timeout_ms > INT_MAX / factor ? INT_MAX : (int)(timeout_ms * factor);
	return real_poll(fds, n, timeout_ms);
}

/* What a fortified QEMU calls instead. */
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t size)
{
	(void)size;
	return ppoll(fds, n, timeout, mask);
}

int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t size)
{
	(void)size;
	return poll(fds, n, timeout_ms);
}

struct companion {
	atomic_int waits; /* the emulated CPU does */
	uint64_t sum;	  /* of its work */
};

static _Thread_local struct companion *companion;
static _Thread_local int looked;

/*
 * Work of some 100 ns. It is as dense as emulated code: an idle loop would leave more of a core to the thread that runs
 * beside it there.
 */
static uint64_t some_work(uint64_t sum)
{
	uint64_t a = sum, b = sum + 1, c = sum + 2, d = sum + 3;
	for (int i = 0; i < 32; i++) {
		a = a * 6364136223846793005u + 1442695040888963407u;
		b ^= b << 13;
		b ^= b >> 7;
		c += a ^ b;
		d = (d << 5) + c;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	}
	return a + b + c + d;
}

static void *work(void *of)
{
	struct companion *c = of;
	for (;;) {
		while (!atomic_load(&c->waits))
			syscall(SYS_futex, &c->waits, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		while (atomic_load_explicit(&c->waits, memory_order_relaxed))
			c->sum = some_work(c->sum);
	}
	return NULL;
}

/* The companion of this thread; none if it emulates no CPU. */
static struct companion *companion_of_thread(void)
{
	char name[16];
	sigset_t all, before;
	pthread_t thread;

	if (looked)
		return companion;
	looked = 1;
	if (!getenv("UNTHROTTLE_STEADY") || pthread_getname_np(pthread_self(), name, sizeof(name)) || strncmp(name, "CPU ", 4))
		return NULL;
	struct companion *made = calloc(1, sizeof(*made));
	if (!made)
		return NULL;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, work, made) == 0)
		companion = made;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return companion;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
	if (!real_wait) /* an older version has another type of condition */
		real_wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
	struct companion *c = companion_of_thread();
	if (!c)
		return real_wait(cond, mutex);
	atomic_store(&c->waits, 1);
	syscall(SYS_futex, &c->waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	int result = real_wait(cond, mutex);
	atomic_store(&c->waits, 0);
	return result;
}
