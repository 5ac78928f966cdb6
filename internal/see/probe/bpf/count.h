/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Counting in a container: words, histograms, and who counts where. */
#ifndef PROBE_COUNT_H
#define PROBE_COUNT_H

#define WORD_COUNT 0xffffULL
#define WORD_TIME ((1ULL << 48) - 1)
#define WORD_TRIES 24
/* How far before a word's time a change may come, in 16 ns: 69 s. What is further away came after it. */
#define LATE (1ULL << 32)

static __always_inline void trouble(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&troubles, &what);
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* within cuts a count to the range of a word. */
static __always_inline __u64 within(__s64 count)
{
	if (count < 0)
		return 0;
	return count > (__s64)WORD_COUNT ? WORD_COUNT : count;
}

/* behind is by how much a change at t comes before a word's time; 0: it comes after it. */
static __always_inline __u64 behind(__u64 t, __u64 since)
{
	__u64 by = (since - t) & WORD_TIME;

	return by < LATE ? by : 0;
}

/*
 * following returns the word after another: its count with what it is owed, then changed by d, from
 * time t on. It is global: the verifier checks it once, and not in each round of each loop of change.
 */
__noinline __u64 following(__u64 was, __s64 owes, int d, __u64 t)
{
	__u64 since = was >> 16;

	if (behind(t, since))
		t = since;
	return t << 16 | within((__s64)within((__s64)(was & WORD_COUNT) + owes) + d);
}

/*
 * change adds d to a word's count. It adds the time since the word's last change to the histogram,
 * at the count that held until now. The program that wins the exchange adds, so every nanosecond is
 * counted once and no program waits for a lock.
 *
 * Time never goes back: a change that comes after a later one holds from that one on, and late gets
 * the difference. CPUs' clocks may differ by some ns. A hypervisor may also take a CPU away between
 * its look at the clock and the exchange.
 *
 * The count stays within its 16 bits: at either end it does not change, and a trouble reports it. A
 * change that wins no exchange is owed: the next change adds it too. Adding it to the word directly
 * could carry into the time or borrow from it.
 *
 * change returns the count before.
 */
static __always_inline __u32 change(__u64 *word, __s64 *owed, __u64 *histogram, __u32 levels, __u64 *late, int d, __u64 now)
{
	__u64 t = (now >> 4) & WORD_TIME;
	__s64 owes = *(volatile __s64 *)owed ? __sync_lock_test_and_set(owed, 0) : 0;
	__u64 was, count;
	bool won = false;

	for (int i = 0; i < WORD_TRIES; i++) {
		was = *(volatile __u64 *)word;
		won = __sync_val_compare_and_swap(word, was, following(was, owes, d, t)) == was;
		if (won)
			break;
	}
	count = within((__s64)(was & WORD_COUNT) + owes);
	if (!won) {
		__sync_fetch_and_add(owed, owes + d);
		trouble(TROUBLE_CONTENTION);
		return count;
	}
	__s64 next = (__s64)count + d;
	if (next < 0 || next > (__s64)WORD_COUNT)
		trouble(next < 0 ? TROUBLE_UNDERFLOW : TROUBLE_FULL);
	__u64 gone = (t - (was >> 16)) & WORD_TIME, by = behind(t, was >> 16);
	__u64 level = count; /* 64 bits: the verifier forgets the range of a number that is extended */
	if (level >= levels)
		level = levels - 1;
	barrier_var(level);
	if (level >= levels)
		return 0;
	if (!by)
		__sync_fetch_and_add(&histogram[level], gone << 4);
	else if (d)
		__sync_fetch_and_add(late, by << 4);
	return count;
}

/*
 * enter and leave enclose the programs that count at switches, wake-ups and timers. A hypervisor
 * may take the CPU away for tens of ms between their look at the clock and their counting. A read
 * of the counts waits until it has seen every CPU outside, or finished, since its begin. An
 * interrupt may nest one program in another.
 *
 * The other programs need neither. User space runs sync_cpu and the task iterator, and reads no
 * counts until they are over. sched_waking, sched_migrate_task and task_rename count nothing. An
 * event that they write too late gets the time of the last event in the recording (order in
 * order.go).
 */
static __always_inline void enter(struct cpu *c) { *(volatile __u32 *)&c->inside += 1; }

static __always_inline void leave(struct cpu *c)
{
	__u32 left = *(volatile __u32 *)&c->inside - 1;

	if (!left)
		*(volatile __u32 *)&c->finished += 1;
	*(volatile __u32 *)&c->inside = left;
}

/* container_of_handle returns a handle's container, NULL if the slot has another one now. */
static __always_inline struct container *container_of_handle(__u64 handle)
{
	__u32 slot = (__u32)handle - 1;
	struct container *c = bpf_map_lookup_elem(&containers, &slot);
	return c && c->handle == handle ? c : NULL;
}

static __always_inline struct usage *usage_of(__u64 handle)
{
	__u32 slot = (__u32)handle - 1;
	return bpf_map_lookup_elem(&usages, &slot);
}

/*
 * The next three are global functions. The verifier checks each once, with numbers as arguments,
 * and not again on every path that leads to them. ran is how long the container held the CPU that
 * it gives up; 0 for a CPU that it takes.
 */
__noinline int width_change(__u64 handle, int d, __u64 now, __u64 ran)
{
	struct container *c = container_of_handle(handle);
	if (!c)
		return 0;
	if (ran) {
		struct usage *u = usage_of(handle);
		if (u)
			u->ns += ran;
	}
	__u64 before = change(&c->width_word, &c->width_owed, c->width, LEVELS, &c->late, d, now);
	if (d > 0 && before + 1 > c->width_most)
		c->width_most = before + 1;
	return 0;
}

__noinline int wanted_change(__u64 handle, int d, __u64 now)
{
	struct container *c = container_of_handle(handle);
	if (c)
		change(&c->wanted_word, &c->wanted_owed, c->wanted, LEVELS, &c->late, d, now);
	return 0;
}

__noinline int stopped_change(__u64 handle, int d, __u64 now)
{
	struct container *c = container_of_handle(handle);
	if (!c)
		return 0;
	if (change(&c->stopped_word, &c->stopped_owed, c->stopped, 2, &c->stopped_late, d, now) == 0 && d > 0)
		__sync_fetch_and_add(&c->stopped_intervals, 1);
	return 0;
}

/*
 * want records which container, if any, counts a thread as wanting a CPU. Every transition is an
 * exchange, so it changes each count once. That covers spurious wake-ups, moves and wake-ups of
 * threads whose dequeue the kernel delayed.
 */
static __always_inline int want(struct thread *t, __u64 handle, __u64 now)
{
	if (!t || t->counted == handle)
		return 0;
	__u64 was = __sync_lock_test_and_set(&t->counted, handle);
	if (was == handle)
		return 0;
	if (was)
		wanted_change(was, -1, now);
	if (handle)
		wanted_change(handle, 1, now);
	return 0;
}

/* take gives a CPU to a container (or to none) and books the time of the previous one. */
static __always_inline int take(struct cpu *c, __u64 handle, __u64 now)
{
	if (!c)
		return 0;
	__u64 was = c->handle;

	if (was == handle)
		return 0;
	if (was)
		width_change(was, -1, now, now - c->since);
	if (handle)
		width_change(handle, 1, now, 0);
	c->handle = handle;
	c->since = now;
	return 0;
}

#endif
