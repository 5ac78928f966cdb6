/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The rule of credit: how many slots a row has now. */
#ifndef SCX_BUCKET_H
#define SCX_BUCKET_H

/* turn_up returns the level at which a fraction's turn at the larger number begins. */
static __always_inline __s64 turn_up(__u64 limit)
{
	__u64 part = limit % MILLION / 1000;
	return part * (1000 - part) * (TURN / MILLION);
}

static __always_inline __s32 widest_of(const struct wish *w, __u32 ncpu)
{
	return w->widest && w->widest < ncpu ? w->widest : ncpu;
}

/* saved returns the credit of a cgroup of which no thread has run since its wish came. Every 52 days it begins anew. */
static __always_inline __s64 saved(const struct wish *w, __u64 now)
{
	__u32 age = (__u32)(now >> SINCE) - w->since;
	__u64 all = (__u64)age * w->limit / MILLION;

	if (!w->since)
		return 0;
	return all < w->credit >> SINCE ? all << SINCE : w->credit;
}

/* settle brings a row to the moment now, and decides how many slots it has. The caller holds the lock. */
static __always_inline void settle(struct row *r, __u64 now, __u32 ncpu)
{
	__u64 limit = r->wish.limit;
	__s64 bound = r->wish.credit, up = turn_up(limit), spent, enter, most, floor = limit / MILLION;
	__s32 widest = widest_of(&r->wish, ncpu);

	if (r->drain) {
		r->allow = UNLIMITED;
		r->at = now;
		return;
	}
	if (before(r->at, now)) {
		__u64 passed = now - r->at;
		if (passed > 1000 * MS)
			passed = 1000 * MS;
		if (r->running >= r->allow && (r->running || r->waiting)) {
			r->at_cap += passed;
			if (r->waiting)
				r->waited += passed;
		}
		r->level += (__s64)(passed * limit / MILLION) - (__s64)(passed * (__u64)r->running);
		r->at = now;
	}
	/* Without credit a fraction keeps what it could not use of its turn, for the next one. */
	most = bound > 2 * up ? bound : 2 * up;
	if (r->level > most)
		r->level = most;
	if (r->level < -(__s64)(1000 * MS))
		r->level = -(__s64)(1000 * MS);

	/* A tick is a million ns, so millionths of a CPU are the ns that it uses in a tick. It owes nothing at the next tick. */
	spent = (__s64)r->running * (__s64)MILLION - (__s64)limit;
	enter = 4 * ((__s64)widest * (__s64)MILLION - (__s64)limit);
	if (enter > bound - (bound >> 2))
		enter = bound - (bound >> 2);
	if (r->wide && r->level <= spent)
		r->wide = 0;
	else if (!r->wide && bound && r->level >= enter && r->level > spent)
		r->wide = 1;
	if (r->level >= up)
		r->up = up != 0;
	else if (r->level <= 0)
		r->up = 0;
	if (r->wide && widest > floor)
		r->allow = widest;
	else
		r->allow = floor + r->up;
}

#endif
