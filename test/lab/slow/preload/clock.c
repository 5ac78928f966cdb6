/*
 * A clock that runs UNTHROTTLE_SLOW times slower for one process: QEMU's.
 *
 * QEMU reads the time by clock_gettime and gettimeofday, and sleeps in poll and ppoll. Elapsed time is divided by the
 * factor, and a timeout multiplied, so that the guest's timers agree with its clocks. The time stamp counter is not
 * slowed: the guest measures its rate against a slowed timer when it boots, and finds a faster counter.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

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
