/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Writing events into the ring of a recording. */
#ifndef PROBE_RECORD_H
#define PROBE_RECORD_H

static __always_inline __u64 holder(__u64 kind, __u64 number) { return kind << 32 | (__u32)number; }

/* The reader is never woken, which would cost switches itself: it looks every few ms. */
static __always_inline void *ring(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&rings, &zero);
}

/*
 * told writes the first size bytes of a record, or counts it as lost. The first
 * one to get through after a loss tells how many were.
 */
__noinline int told(union any_record *record, __u32 size)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	void *r = ring();

	if (!r || !c || !record || size > sizeof(*record))
		return -1;
	if (c->lost != c->lost_told) {
		__u64 lost = c->lost;
		struct record l = {.at = record->r.at, .kind = RECORD_LOST, .cpu = cpu, .a = lost - c->lost_told};
		if (bpf_ringbuf_output(r, &l, sizeof(l), BPF_RB_NO_WAKEUP)) {
			__sync_fetch_and_add(&c->lost, 1);
			return -1;
		}
		c->lost_told = lost;
	}
	record->r.cpu = cpu;
	if (bpf_ringbuf_output(r, record, size, BPF_RB_NO_WAKEUP)) {
		__sync_fetch_and_add(&c->lost, 1);
		return -1;
	}
	return 0;
}

static __always_inline int tell(union any_record *r) { return told(r, sizeof(r->r)); }
static __always_inline int tell_more(union any_record *r) { return told(r, sizeof(r->more)); }
static __always_inline int tell_thread(union any_record *r) { return told(r, sizeof(r->thread)); }

/* holder_of says who a task is, for records. A process outside any container is introduced by its leader's name. */
static __always_inline __u64 holder_of(struct task_struct *t, __u64 handle, __u64 now)
{
	if (t->pid == 0)
		return holder(HOLDER_IDLE, 0);
	if (handle && handle == recorded)
		return holder(HOLDER_THREAD, t->pid);
	if (handle)
		return holder(HOLDER_CONTAINER, handle);
	if (t->flags & PF_KTHREAD)
		return holder(HOLDER_KERNEL, 0);

	__u32 tgid = t->tgid, e = epoch;
	__u32 *known = bpf_map_lookup_elem(&processes, &tgid);
	if (known && *known == e)
		return holder(HOLDER_PROCESS, tgid);
	union any_record p = {.r = {.at = now, .kind = RECORD_PROCESS, .a = tgid, .b = tgid}};
	BPF_CORE_READ_INTO(&p.thread.comm, t, group_leader, comm);
	if (bpf_map_update_elem(&processes, &tgid, &e, BPF_ANY))
		return holder(HOLDER_PROCESS, 0);
	tell_thread(&p);
	return holder(HOLDER_PROCESS, tgid);
}

/* introduce tells of a thread of the recorded container before the first record that names it. */
static __always_inline void introduce(struct thread *t, struct task_struct *task, __u8 flags, __u64 now)
{
	__u64 leaf = leaf_of(task);
	__u32 e = epoch;

	if (t->epoch == e && t->leaf == leaf)
		return;
	union any_record r = {.r = {.at = now, .kind = RECORD_THREAD, .flags = flags, .a = task->pid, .b = task->tgid}};
	r.thread.cgroup = leaf;
	BPF_CORE_READ_INTO(&r.thread.comm, task, comm);
	if (tell_thread(&r))
		return;
	t->leaf = leaf;
	t->named_at = now;
	t->renamed = 0;
	t->epoch = e;
}

/* A thread's name is told this often at most, whatever it does. */
#define NAMES_EVERY (20 * 1000 * 1000)

static __always_inline void rename(struct thread *t, struct task_struct *task, const char *name, __u64 now)
{
	if (now - t->named_at < NAMES_EVERY) {
		t->renamed = 1;
		return;
	}
	union any_record r = {.r = {.at = now, .kind = RECORD_THREAD, .a = task->pid, .b = task->tgid}};
	r.thread.cgroup = t->leaf;
	bpf_probe_read_kernel_str(r.thread.comm, sizeof(r.thread.comm), name);
	t->named_at = now;
	t->renamed = tell_thread(&r) != 0;
}

/* left tells that a thread which the recording knows is in another container now. */
static __always_inline void left(struct thread *t, struct task_struct *task, __u64 now)
{
	if (t->epoch != epoch)
		return;
	union any_record r = {.r = {.at = now, .kind = RECORD_LEAVE, .a = task->pid, .b = leaf_of(task)}};
	if (tell(&r) == 0)
		t->epoch = 0;
}

#endif
