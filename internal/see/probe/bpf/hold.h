/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stopped time: which run queues have threads that a quota holds back.
 *
 * Since Linux 6.18 a thread of a throttled queue is parked on its way back to
 * user mode, and marked (task_struct.throttled); before, the whole queue is
 * taken off its CPU (cfs_rq.throttle_count) and holds back all that wait on it.
 * Either way it begins at a switch or a wake-up that we see. It ends when the
 * queue's throttle_count is back at 0, which no event tells: we look at every
 * switch and every timer of that CPU, and right after the timer that refilled
 * the quota, for all CPUs that it let go.
 *
 * A container is stopped while any queue of it is in the list; cgroups below it
 * have queues, hence entries, of their own.
 */
#ifndef PROBE_HOLD_H
#define PROBE_HOLD_H

#define MAX_LEVELS 12

static __always_inline bool throttled_itself(struct cfs_rq *q)
{
	return BPF_CORE_READ_BITFIELD_PROBED(q, throttled);
}

/* whose gives the id of the nearest cgroup whose quota holds a task back, 0 if none does any longer. */
__noinline __u64 whose(__u64 at)
{
	struct sched_entity *se = (void *)at;

	for (int i = 0; i < MAX_LEVELS && se; i++) {
		struct cfs_rq *q = BPF_CORE_READ(se, cfs_rq);
		if (!q)
			break;
		if (throttled_itself(q))
			return BPF_CORE_READ(q, tg, css.cgroup, kn, id);
		se = BPF_CORE_READ(se, parent);
	}
	return 0;
}

/*
 * freed says whether no quota holds back a queue of a task group: any longer, or
 * (soon) as soon as its CPU hears of the refill.
 */
__noinline int freed(__u64 queue, __u64 group, __u32 soon)
{
	struct cfs_rq *q = (void *)queue;

	if ((__u64)BPF_CORE_READ(q, tg) != group)
		return true; /* the cgroup is gone */
	if (BPF_CORE_READ(q, throttle_count) == 0)
		return true;
	if (!soon)
		return false;
	int cpu = BPF_CORE_READ(q, rq, cpu);
	struct task_group *tg = BPF_CORE_READ(q, tg);
	for (int i = 0; i < MAX_LEVELS && q; i++) {
		if (throttled_itself(q) && BPF_CORE_READ(q, runtime_remaining) <= 0)
			return false;
		tg = BPF_CORE_READ(tg, parent);
		if (!tg)
			break;
		struct cfs_rq **queues = BPF_CORE_READ(tg, cfs_rq);
		q = NULL;
		if (bpf_probe_read_kernel(&q, sizeof(q), queues + cpu))
			break;
	}
	return true;
}

static __always_inline struct held *held_entry(__u32 cpu, __u32 i)
{
	__u32 at = cpu * HELD_PER_CPU + i;
	return bpf_map_lookup_elem(&held, &at);
}

/* release_one ends one entry of a CPU if its queue is free. The program that takes the handle out ends it. */
__noinline int release_one(__u32 cpu, __u32 i, __u64 now, __u32 soon)
{
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	struct held *h = held_entry(cpu, i);

	if (!c || !h)
		return 0;
	__u64 handle = *(volatile __u64 *)&h->handle;
	if (!handle || handle == HELD_CLAIMED || !freed(h->queue, h->group, soon))
		return 0;
	union any_record r = {.r = {.at = now, .kind = RECORD_RELEASE, .a = h->leaf, .b = cpu}};
	if (__sync_val_compare_and_swap(&h->handle, handle, 0) != handle)
		return 0;
	__sync_fetch_and_add(&c->held, -1);
	stopped_change(handle, -1, now);
	if (handle == recorded)
		tell(&r);
	return 0;
}

/*
 * release looks through the entries of one CPU, this one or another. What it
 * calls is global: verified once, not for each round of each loop around it,
 * which Linux 6.1 gives up on.
 */
__noinline int release(__u32 cpu, __u64 now, __u32 soon)
{
	for (__u32 i = 0; i < HELD_PER_CPU; i++)
		release_one(cpu, i, now, soon);
	return 0;
}

/* claim takes a free entry of a CPU: none but the claimant writes in it until it has a handle. NULL: all are in use. */
static __always_inline struct held *claim(__u32 cpu)
{
	for (__u32 i = 0; i < HELD_PER_CPU; i++) {
		struct held *h = held_entry(cpu, i);
		if (h && !h->handle && !__sync_val_compare_and_swap(&h->handle, 0, HELD_CLAIMED))
			return h;
	}
	return NULL;
}

/*
 * hold notes that a quota holds back threads of a queue on this CPU or, woken
 * elsewhere, on another. Switches and wake-ups have the queue's lock, the task
 * iterator has not: both may note one queue at once. Two entries of one queue end
 * together, and a container is stopped while it has any.
 */
__noinline int hold(__u64 at, __u64 handle, __u64 leaf, __u64 now)
{
	struct cfs_rq *q = (void *)at;
	__u32 cpu = BPF_CORE_READ(q, rq, cpu);
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	if (!c)
		return 0;
	for (__u32 i = 0; i < HELD_PER_CPU; i++) {
		struct held *h = held_entry(cpu, i);
		if (h && h->handle == handle && h->queue == (__u64)q)
			return 0;
	}
	struct held *h = claim(cpu);
	if (!h) {
		trouble(TROUBLE_HELD);
		return 0;
	}
	h->queue = (__u64)q;
	h->leaf = leaf;
	h->group = (__u64)BPF_CORE_READ(q, tg);
	/* Counted before it can be seen: another CPU may release it at once. */
	stopped_change(handle, 1, now);
	__sync_fetch_and_add(&c->held, 1);
	__sync_lock_test_and_set(&h->handle, handle); /* after all of the above, on every CPU */
	return 1;
}

/* waiting is how many entities of a queue want a CPU: tasks, and groups below it. */
static __always_inline unsigned int waiting(struct cfs_rq *q)
{
	struct cfs_rq___since_6_14 *now = (void *)q;
	struct cfs_rq___since_6_12 *delayed = (void *)q;
	struct cfs_rq___before_6_14 *before = (void *)q;

	if (bpf_core_field_exists(now->h_nr_runnable))
		return BPF_CORE_READ(now, h_nr_runnable);
	/* A sleeper whose dequeue was delayed is still queued, and wants nothing. */
	if (bpf_core_field_exists(delayed->h_nr_delayed))
		return BPF_CORE_READ(before, h_nr_running) - BPF_CORE_READ(delayed, h_nr_delayed);
	return BPF_CORE_READ(before, h_nr_running);
}

/* fair says whether a task is of the class that quotas are for. */
static __always_inline bool fair(struct task_struct *t)
{
	return t->policy != SCHED_FIFO && t->policy != SCHED_RR && t->policy != SCHED_DEADLINE;
}

#endif
