/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Writing events into the ring of a recording. */
#ifndef PROBE_RECORD_H
#define PROBE_RECORD_H

static __always_inline __u64 holder(__u64 kind, __u64 number) { return kind << 32 | (__u32)number; }

/*
 * The program never wakes the reader, because that would cost switches itself. The reader polls
 * every few ms.
 */
static __always_inline void *ring(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&rings, &zero);
}

/*
 * emit_sized writes the first size bytes of a record, or counts it as lost. The first record that
 * gets through after a loss follows one with the number lost.
 */
__noinline int emit_sized(union any_record *record, __u32 size)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	void *r = ring();

	if (!r || !c || !record || size > sizeof(*record))
		return -1;
	if (c->lost != c->lost_reported) {
		__u64 lost = c->lost;
		struct record l = {.at = record->r.at, .kind = RECORD_LOST, .cpu = cpu, .a = lost - c->lost_reported};
		if (bpf_ringbuf_output(r, &l, sizeof(l), BPF_RB_NO_WAKEUP)) {
			__sync_fetch_and_add(&c->lost, 1);
			return -1;
		}
		c->lost_reported = lost;
	}
	record->r.cpu = cpu;
	if (bpf_ringbuf_output(r, record, size, BPF_RB_NO_WAKEUP)) {
		__sync_fetch_and_add(&c->lost, 1);
		return -1;
	}
	return 0;
}

static __always_inline int emit(union any_record *r) { return emit_sized(r, sizeof(r->r)); }
static __always_inline int emit_more(union any_record *r) { return emit_sized(r, sizeof(r->more)); }
static __always_inline int emit_thread(union any_record *r) { return emit_sized(r, sizeof(r->thread)); }

/*
 * The next functions write rare events. They are global, so that the verifier checks them once and
 * not on every path through a switch. Tasks are therefore passed as addresses.
 *
 * process introduces a process outside any container by its leader's name.
 */
__noinline __u64 process(__u64 task, __u32 tgid, __u64 now)
{
	struct task_struct *t = (void *)task;
	__u32 e = epoch;
	union any_record p = {.r = {.at = now, .kind = RECORD_PROCESS, .a = tgid, .b = tgid}};

	BPF_CORE_READ_INTO(&p.thread.comm, t, group_leader, comm);
	if (bpf_map_update_elem(&processes, &tgid, &e, BPF_ANY))
		return holder(HOLDER_PROCESS, 0);
	emit_thread(&p);
	return holder(HOLDER_PROCESS, tgid);
}

/* holder_of returns the holder code of a task (an address), for records. */
__noinline __u64 holder_of(__u64 task, __u64 handle, __u64 now)
{
	struct task_struct *t = (void *)task;
	__u32 pid = BPF_CORE_READ(t, pid);

	if (pid == 0)
		return holder(HOLDER_IDLE, 0);
	if (handle && handle == recorded)
		return holder(HOLDER_THREAD, pid);
	if (handle)
		return holder(HOLDER_CONTAINER, handle);
	if (BPF_CORE_READ(t, flags) & PF_KTHREAD)
		return holder(HOLDER_KERNEL, 0);
	__u32 tgid = BPF_CORE_READ(t, tgid);
	__u32 *known = bpf_map_lookup_elem(&processes, &tgid);
	if (known && *known == epoch)
		return holder(HOLDER_PROCESS, tgid);
	return process(task, tgid, now);
}

__noinline int introduced(struct thread *t, __u64 at, __u32 flags, __u64 now, __u64 leaf)
{
	struct task_struct *task = (void *)at;
	union any_record r = {.r = {.at = now, .kind = RECORD_THREAD, .flags = flags}};

	if (!t)
		return 0;
	if (t->epoch != epoch)
		t->tid = BPF_CORE_READ(task, pid);
	r.r.a = t->tid;
	r.r.b = BPF_CORE_READ(task, tgid);
	r.thread.cgroup = leaf;
	BPF_CORE_READ_INTO(&r.thread.comm, task, comm);
	if (emit_thread(&r))
		return 0;
	t->leaf = leaf;
	t->named_at = now >> 20;
	t->renamed = 0;
	t->epoch = epoch;
	return 0;
}

/*
 * introduce writes a thread of the recorded container before the first record that names it. It
 * uses the thread's number at that time, which stays its number in the recording. The kernel may
 * change the number later. A thread that calls execve and is not the first of its process swaps
 * numbers with the first one, which may not have ended yet.
 */
static __always_inline void introduce(struct thread *t, __u64 task, __u8 flags, __u64 now, __u64 leaf)
{
	if (t->epoch != epoch || t->leaf != leaf)
		introduced(t, task, flags, now, leaf);
}

/* A thread's name is written every 20 ms at most. In units of 2^20 ns. */
#define NAMES_EVERY 20

/* renamed writes that a task has the name at an address; 0 means its own name. */
__noinline int renamed(struct thread *t, __u64 at, __u64 name, __u64 now)
{
	struct task_struct *task = (void *)at;

	if (!t)
		return 0;
	if ((__u16)((__u16)(now >> 20) - t->named_at) < NAMES_EVERY) {
		t->renamed = 1;
		return 0;
	}
	union any_record r = {.r = {.at = now, .kind = RECORD_THREAD}};
	r.r.a = t->tid;
	r.r.b = BPF_CORE_READ(task, tgid);
	r.thread.cgroup = t->leaf;
	if (name)
		bpf_probe_read_kernel_str(r.thread.comm, sizeof(r.thread.comm), (const void *)name);
	else
		BPF_CORE_READ_INTO(&r.thread.comm, task, comm);
	t->named_at = now >> 20;
	t->renamed = emit_thread(&r) != 0;
	return 0;
}

__noinline int gone(struct thread *t, __u64 leaf, __u64 now)
{
	union any_record r = {.r = {.at = now, .kind = RECORD_LEAVE, .b = leaf}};

	if (!t)
		return 0;
	r.r.a = t->tid;
	if (emit(&r) == 0)
		t->epoch = 0;
	return 0;
}

/* left writes that a thread which the recording knows is in another container now. */
static __always_inline void left(struct thread *t, __u64 leaf, __u64 now)
{
	if (t->epoch == epoch)
		gone(t, leaf, now);
}

#endif
