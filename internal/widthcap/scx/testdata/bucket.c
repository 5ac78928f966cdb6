/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The scheduler's rule of credit for one row, tick by tick. The input is the limit in millionths of a CPU, the credit in ns,
 * the most CPUs with credit (0: all) and the host's CPUs, then for each tick how many threads want to run. The output is for
 * each tick how many slots the row had.
 */
#include "host.h"

int scanf(const char *format, ...);

static void step(void) {}

int main(void)
{
	struct row r = {};
	__u32 ncpu;
	__s32 wanted;

	if (scanf("%llu %llu %u %u", &r.wish.limit, &r.wish.credit, &r.wish.widest, &ncpu) != 4)
		return 2;
	reset();
	r.at = now_ns;
	settle(&r, now_ns, ncpu);
	while (scanf("%d", &wanted) == 1) {
		__s32 slots = r.allow;

		r.running = wanted < slots ? wanted : slots;
		r.waiting = wanted - r.running;
		now_ns += TICK;
		settle(&r, now_ns, ncpu);
		printf("%d\n", slots);
	}
	return 0;
}
