/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stopped time: which run queues have threads that a quota holds back.
 *
 * Since Linux 6.18 the kernel parks a thread of a throttled queue on its way back to user mode and
 * marks it (task_struct.throttled). Earlier kernels take the whole queue off its CPU
 * (cfs_rq.throttle_count) and hold back all threads that wait on it. Either way it begins at a
 * switch or a wake-up, which we see.
 *
 * It ends when the queue's throttle_count returns to 0. No event reports that. So we check at every
 * switch and every timer of that CPU. After the timer that refills the quota we check all CPUs that
 * it let run.
 *
 * A container is stopped while the list has any of its queues. Each cgroup below it has its own
 * queues and therefore its own entries.
 */
#ifndef PROBE_HOLD_H
#define PROBE_HOLD_H

#define MAX_LEVELS 12

static __always_inline bool throttled_itself(struct cfs_rq *q)
{
	return BPF_CORE_READ_BITFIELD_PROBED(q, throttled);
}

/*
 * throttling_cgroup returns the id of the nearest cgroup whose quota holds a task back, 0 without
 * one.
 */
__noinline __u64 throttling_cgroup(__u64 at)
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
 * freed reports whether no quota holds back a queue of a task group. With soon it also accepts a
 * queue that becomes free as soon as its CPU learns of the refill.
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

/*
 * release_one ends one entry of a CPU if its queue is free. The program that takes the handle out
 * ends the entry.
 */
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
		emit(&r);
	return 0;
}

/*
 * release checks the entries of one CPU, this one or another. The functions that it calls are
 * global: Linux 6.1 gives up if it verifies them for each round of each surrounding loop.
 */
__noinline int release(__u32 cpu, __u64 now, __u32 soon)
{
	for (__u32 i = 0; i < HELD_PER_CPU; i++)
		release_one(cpu, i, now, soon);
	return 0;
}

/* holds reports whether an entry is of this container and queue. */
__noinline int holds(__u32 cpu, __u32 i, __u64 handle, __u64 queue)
{
	struct held *h = held_entry(cpu, i);
	return h && h->handle == handle && h->queue == queue;
}

/* claimed takes an entry of a CPU if it is free. */
__noinline int claimed(__u32 cpu, __u32 i)
{
	struct held *h = held_entry(cpu, i);
	return h && !h->handle && !__sync_val_compare_and_swap(&h->handle, 0, HELD_CLAIMED);
}

/*
 * claim takes a free entry of a CPU. Only the claimant writes the entry until it has a handle. NULL
 * means that all are in use.
 */
static __always_inline struct held *claim(__u32 cpu)
{
	__u32 i;

	for (i = 0; i < HELD_PER_CPU; i++)
		if (claimed(cpu, i))
			break;
	return i < HELD_PER_CPU ? held_entry(cpu, i) : NULL;
}

/*
 * hold notes that a quota holds back threads of a queue on this CPU or, for a thread woken
 * elsewhere, on another. Switches and wake-ups hold the queue's lock, but the task iterator does
 * not. Two programs may thus note one queue at the same time. Two entries of one queue end
 * together, and a container is stopped while it has any.
 */
__noinline int hold(__u64 at, __u64 handle, __u64 leaf, __u64 now)
{
	struct cfs_rq *q = (void *)at;
	__u32 cpu = BPF_CORE_READ(q, rq, cpu);
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	if (!c)
		return 0;
	for (__u32 i = 0; i < HELD_PER_CPU; i++)
		if (holds(cpu, i, handle, at))
			return 0;
	struct held *h = claim(cpu);
	if (!h) {
		trouble(TROUBLE_HELD);
		return 0;
	}
	h->queue = (__u64)q;
	h->leaf = leaf;
	h->group = (__u64)BPF_CORE_READ(q, tg);
	/*
	 * Counted before the entry is visible, because another CPU may release a visible entry
	 * immediately.
	 */
	stopped_change(handle, 1, now);
	__sync_fetch_and_add(&c->held, 1);
	__sync_lock_test_and_set(&h->handle, handle); /* after all of the above, on every CPU */
	return 1;
}

/* hold_task is hold for the queue of a task, an address. */
__noinline int hold_task(__u64 task, __u64 handle, __u64 now)
{
	struct task_struct *t = (void *)task;
	return hold((__u64)BPF_CORE_READ(t, se.cfs_rq), handle, leaf_at(task), now);
}

/* waiting returns how many entities of a queue want a CPU: tasks, and groups below it. */
static __always_inline unsigned int waiting(struct cfs_rq *q)
{
	struct cfs_rq___since_6_14 *now = (void *)q;
	struct cfs_rq___since_6_12 *delayed = (void *)q;
	struct cfs_rq___before_6_14 *before = (void *)q;

	if (bpf_core_field_exists(now->h_nr_runnable))
		return BPF_CORE_READ(now, h_nr_runnable);
	/* The kernel keeps a sleeper queued when it delays its dequeue. It wants no CPU. */
	if (bpf_core_field_exists(delayed->h_nr_delayed))
		return BPF_CORE_READ(before, h_nr_running) - BPF_CORE_READ(delayed, h_nr_delayed);
	return BPF_CORE_READ(before, h_nr_running);
}

/* fair reports whether a task is in the class that quotas apply to. */
static __always_inline bool fair(struct task_struct *t)
{
	return t->policy != SCHED_FIFO && t->policy != SCHED_RR && t->policy != SCHED_DEADLINE;
}

#endif
