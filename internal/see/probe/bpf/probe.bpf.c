//go:build ignore
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * At every scheduling event the programs count, for each watched container, how many CPUs it uses
 * (width) and how many of its threads want one (wanted). They also count since when a quota holds
 * any of them back (stopped), and write the events of one container.
 *
 *	CPU 0   ..A1 A1 A1 .. .. A2 ..     sched_switch says who gives up a CPU and
 *	CPU 1   ..B1 A2 A2 A2 .. .. ..     who takes it: width of A is 0 1 2 1 0 1 0
 *
 * Each CPU keeps which container holds it (struct cpu). No program looks up the container of a
 * leaving task again: tasks move between cgroups, and every increment needs its decrement in the
 * same container. For the same reason each thread keeps which container counts it as wanting a CPU
 * (struct thread).
 *
 * Cost: one look-up per switch for the arriving task; atomics only where a count changes. User
 * space gets nothing unless a recording runs.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include "probe.h"
#include "maps.h"
#include "count.h"
#include "place.h"
#include "record.h"
#include "hold.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Keeps these types in the object, from which bpf2go generates the user side's code. */
#define SHARE(kind, name) const kind name *_##name __attribute__((unused))
SHARE(enum, record_kind);
SHARE(enum, record_flags);
SHARE(enum, holder_kind);
SHARE(enum, trouble);
SHARE(struct, record);
SHARE(struct, record_more);
SHARE(struct, record_thread);
SHARE(struct, record_period);
SHARE(struct, thread_row);
SHARE(struct, row);
SHARE(struct, connection);

extern void sched_cfs_period_timer __ksym __weak;
extern void sched_cfs_slack_timer __ksym __weak;

static __always_inline struct cpu *this_cpu(__u32 *number)
{
	*number = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&cpus, number);
}

/* stack_anywhere returns the address of a thread's stack as a number. */
static __always_inline __u64 stack_anywhere(struct task_struct *t)
{
	return (__u64)BPF_CORE_READ(t, stack);
}

/*
 * stack_of is the same without a call, where interrupts are off, as at a switch and at another
 * thread's wake-up. Until the value has been in a map, the verifier takes it for a pointer.
 */
static __always_inline __u64 stack_of(struct cpu *c, struct task_struct *t)
{
	*(volatile __u64 *)&c->stack = (__u64)t->stack;
	return *(volatile __u64 *)&c->stack;
}

/*
 * thread_of finds a thread's state. Per-thread state lives in an array indexed by a hash of the
 * stack address. On a collision it is in task storage, which is ten times slower. With ours, the
 * thread belongs to a watched container, and thread_of makes its state if necessary. A stack
 * belongs to one thread for its whole life; the thread's number does not (exec). Some kernels
 * cannot make task storage under a run queue's lock. There task_newtask and the iterator have made
 * it for all threads of the host, because any may move here later.
 */
static __always_inline struct thread *thread_of(struct task_struct *t, __u64 stack, bool ours)
{
	__u32 at = stack * HASH_FACTOR >> thread_slot_shift;
	struct thread *thread_slot = bpf_map_lookup_elem(&thread_slots, &at), *known;

	if (!thread_slot)
		return NULL;
	if (thread_slot->stack == stack)
		return thread_slot;
	if (t->bpf_storage) {
		known = bpf_task_storage_get(&threads, t, 0, 0);
		if (known)
			return known;
		if (!create_on) { /* it exists but is busy: no second state for this thread */
			if (ours)
				trouble(TROUBLE_THREADS);
			return NULL;
		}
	}
	if (!ours)
		return NULL;
	__u64 owner = __sync_val_compare_and_swap(&thread_slot->stack, 0, stack);
	if (!owner || owner == stack) /* another CPU may do this for the same thread */
		return thread_slot;
	known = bpf_task_storage_get(&threads, t, 0, create_on ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!known)
		trouble(TROUBLE_THREADS);
	return known;
}

/* release_slot frees the slot of a thread that wants no CPU. Task storage ends with its task. */
static __always_inline void release_slot(struct thread *t)
{
	if (!t->stack)
		return;
	t->leaf = t->waker = t->place = t->group = 0;
	t->generation = t->epoch = t->named_at = t->renamed = 0;
	barrier();
	*(volatile __u64 *)&t->stack = 0;
}

/*
 * held_back reports whether this switch or wake-up shows that a quota holds back threads of the
 * task's queue.
 */
static __always_inline bool held_back(struct task_struct *t, bool sleeps)
{
	if (mark_task)
		return !sleeps && t->throttled;
	if (!mark_queue || !fair(t))
		return false;
	struct cfs_rq *q = t->se.cfs_rq;
	return q && q->throttle_count > 0 && (!sleeps || waiting(q) > 0);
}

/*
 * The part of a switch that a recording needs. What a task tells is read where its type is known:
 * from an address, each step is a call. Small, because Linux 6.1 allows 512 bytes of stack for the
 * longest chain of calls. The task that gives up the CPU is the current one.
 */
struct switched {
	__u64 next, next_leaf;
	__u64 was, is; /* handles */
	__u32 prev_pid, next_pid;
	__u8 prev_dead, preempt, sleeps, throttled;
	__u8 unwoken; /* next takes the CPU, and we saw no wake-up here */
	__u8 begins;  /* the queue of prev is held back from now on */
};

/*
 * emit_wakeup writes a wake-up that we did not see. The thread came from another container, or the
 * kernel sent no event.
 */
__noinline int emit_wakeup(__u32 pid, __u32 cpu, __u64 now)
{
	union any_record r = {.r = {.at = now, .kind = RECORD_WAKEUP, .a = pid | (__u64)cpu << 32}};

	r.r.b = holder(HOLDER_KERNEL, 0);
	emit(&r);
	return 0;
}

/* emit_exit writes that a thread has ended, and its CPU time. */
__noinline int emit_exit(__u64 at, __u32 tid, __u64 now)
{
	struct task_struct *t = (void *)at;
	union any_record x = {.r = {.at = now, .kind = RECORD_EXIT}};

	x.r.a = tid;
	x.r.b = BPF_CORE_READ(t, utime);
	x.more.c = BPF_CORE_READ(t, stime);
	emit_more(&x);
	return 0;
}

/* emit_hold writes that the quota of throttler begins to hold back the queue of a cgroup on a CPU. */
__noinline int emit_hold(__u64 leaf, __u32 cpu, __u64 throttler, __u64 now)
{
	union any_record r = {.r = {.at = now, .kind = RECORD_HOLD, .a = leaf, .b = cpu}};

	r.more.c = throttler;
	emit_more(&r);
	return 0;
}

/*
 * emit_switch writes a switch, with the throttler if a quota caused it. Its record is on its own
 * stack, not on the caller's.
 */
__noinline int emit_switch(__u64 from, __u64 to, __u32 flags, __u64 throttler, __u64 now)
{
	union any_record r = {.r = {.at = now, .kind = RECORD_SWITCH, .flags = flags, .a = from, .b = to}};

	r.more.c = throttler;
	return flags & FLAG_THROTTLED ? emit_more(&r) : emit(&r);
}

/* holder_by is holder_of where the task's number is known, which mostly saves all other reads. */
static __always_inline __u64 holder_by(__u32 pid, __u64 task, __u64 handle, __u64 now)
{
	if (pid == 0)
		return holder(HOLDER_IDLE, 0);
	if (!handle)
		return holder_of(task, 0, now);
	return handle == recorded ? holder(HOLDER_THREAD, pid) : holder(HOLDER_CONTAINER, handle);
}

/* throttler_of returns the id of the cgroup whose quota holds a task back, 0 without one. */
static __always_inline __u64 throttler_of(__u64 task)
{
	return throttling_cgroup(task + bpf_core_field_offset(struct task_struct, se));
}

/*
 * record_switch is global so that the verifier checks it once; on every path to it, that took
 * seconds.
 */
__noinline int record_switch(struct switched *s, struct thread *prev, struct thread *next, __u64 now)
{
	__u32 cpu, e = epoch;
	struct cpu *c = this_cpu(&cpu);

	if (!s || !c)
		return 0;
	__u64 task = bpf_get_current_task(), prev_leaf = leaf_of(bpf_get_current_task_btf()->sched_task_group);
	__u64 from = c->epoch == e ? c->holder : holder_by(s->prev_pid, task, s->was, now);
	__u64 to = holder_by(s->next_pid, s->next, s->is, now);
	__u64 throttler = s->throttled ? throttler_of(task) : 0;
	bool from_us = from >> 32 == HOLDER_THREAD, to_us = to >> 32 == HOLDER_THREAD;

	if (next) {
		if (to_us) {
			introduce(next, s->next, FLAG_MOVED, now, s->next_leaf);
			to = holder(HOLDER_THREAD, next->tid);
			if (s->unwoken)
				emit_wakeup(next->tid, cpu, now);
			if (next->renamed)
				renamed(next, s->next, 0, now);
		} else {
			left(next, s->next_leaf, now);
		}
	}
	c->holder = to;
	c->epoch = e;
	if (from_us && prev) {
		introduce(prev, task, 0, now, prev_leaf);
		from = holder(HOLDER_THREAD, prev->tid);
	}
	if (from_us || to_us || from != to) {
		__u32 flags = (s->preempt ? FLAG_IN_KERNEL : 0) | (s->sleeps ? 0 : FLAG_RUNNABLE);
		if (s->throttled && from_us && !s->sleeps)
			flags |= FLAG_THROTTLED;
		emit_switch(from, to, flags, throttler, now);
		if (from_us && s->prev_dead)
			emit_exit(task, from, now);
	}
	if (s->begins)
		emit_hold(prev_leaf, cpu, throttler, now);
	return 0;
}

/*
 * place_of returns the container of a task and finds the thread's state. A thread of a watched
 * container keeps its place, which saves a look-up by cgroup, half of a switch's cost.
 */
static __always_inline __u64 place_of(struct task_struct *t, struct task_group *group, __u64 stack, struct thread **known)
{
	__u32 now = generation;
	struct thread *k = wanted_on ? thread_of(t, stack, false) : NULL;

	if (k && k->group == (__u64)group && k->generation == now) {
		*known = k;
		return k->place;
	}
	__u64 handle = handle_of(group);
	if (!k && handle && wanted_on)
		k = thread_of(t, stack, true);
	if (k) {
		k->place = handle;
		k->group = (__u64)group;
		k->generation = now;
	}
	*known = k;
	return handle;
}

/*
 * sync corrects a CPU's holder for the task that runs on it: at the start, and after moves between
 * cgroups, which cause no switch. In a recording such a move looks like a switch. flags says
 * whether the previous holder still wants the CPU. After a switch without an event that is unknown,
 * and "no" is the smaller error: a whole sleep is longer than a wait.
 *
 * It is always about the current task, at a switch the one that gives up the CPU. So it is global:
 * a task as an argument would have to be an address, from which no storage of a task can be had.
 */
__noinline int sync(__u32 flags, __u64 now)
{
	struct task_struct *t = bpf_get_current_task_btf();
	struct task_group *group = t->sched_task_group;
	struct thread *known = NULL;
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);

	if (!c)
		return 0;
	__u64 is = t->pid ? place_of(t, group, stack_anywhere(t), &known) : 0;

	take(c, is, now);
	c->group = (__u64)group;
	c->generation = generation;
	c->pid = t->pid;
	if (!wanted_on)
		return 0;
	bool unwoken = known && known->counted != is;
	if (known)
		want(known, is, now);
	if (!recorded)
		return 0;
	if (c->epoch != epoch) { /* sync_cpu writes the holder of the CPU */
		if (known && is != recorded)
			left(known, leaf_of(group), now);
		return 0;
	}
	__u64 to = holder_of(address(t), is, now);
	if (known && is == recorded) {
		introduce(known, address(t), FLAG_MOVED, now, leaf_of(group));
		to = holder(HOLDER_THREAD, known->tid);
	}
	if (to == c->holder)
		return 0;
	if (known && is == recorded && unwoken)
		emit_wakeup(known->tid, t->thread_info.cpu, now);
	emit_switch(c->holder, to, flags, 0, now);
	c->holder = to;
	if (known && is != recorded)
		left(known, leaf_of(group), now);
	return 0;
}

static __always_inline int switched(struct cpu *c, __u32 cpu, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct task_group *group = next->sched_task_group;

	/*
	 * A kernel may switch without an event: 6.18 left out one in a thousand. The thread that gives
	 * up the CPU now has held it since some moment after the last switch that we saw.
	 */
	if (c->pid != prev->pid && c->generation) {
		struct thread *same = recorded ? thread_of(prev, stack_of(c, prev), false) : NULL;
		if (!same || same->epoch != epoch || same->tid != c->pid) {
			c->unseen++;
			sync(0, bpf_ktime_get_ns());
		}
	}
	struct thread *p = NULL, *n = NULL;
	__u64 was = c->handle, us = recorded, is = next->pid ? place_of(next, group, stack_of(c, next), &n) : 0;
	bool sleeps = !preempt && prev->__state != TASK_RUNNING, throttled = false;
	bool dead = prev->__state & TASK_DEAD;

	if (wanted_on) {
		if (sleeps || us)
			p = thread_of(prev, stack_of(c, prev), false);
		throttled = was && held_back(prev, sleeps);
	}
	c->group = (__u64)group;
	c->generation = generation;
	c->pid = next->pid;
	/* No count changes, so the clock is not read: that is the most expensive part. */
	if (was == is && !(p && sleeps && (p->counted || dead)) && !(n && n->counted != is) && !throttled && !c->held && !us)
		return 0;

	__u64 now = bpf_ktime_get_ns();
	take(c, is, now);
	if (!wanted_on)
		return 0;
	bool unwoken = false;
	if (p && sleeps)
		want(p, 0, now);
	if (n) {
		unwoken = n->counted != is;
		want(n, is, now);
	}
	if (c->held)
		release(cpu, now, 0);
	bool begins = throttled && hold_task(address(prev), was, now);
	if (us) {
		struct switched s = {
			.next = address(next), .next_leaf = leaf_of(group), .was = was, .is = is,
			.prev_pid = prev->pid, .next_pid = next->pid, .prev_dead = dead, .preempt = preempt, .sleeps = sleeps,
			.throttled = throttled, .unwoken = unwoken, .begins = begins && mark_queue && was == us,
		};
		record_switch(&s, p, n, now);
	}
	if (p && dead)
		release_slot(p);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!c)
		return 0;
	enter(c);
	switched(c, cpu, preempt, prev, next);
	leave(c);
	return 0;
}

/* The kernel reports a thread that wakes itself with interrupts on (try_to_wake_up). */
static __always_inline __u64 woken_stack(struct cpu *c, struct task_struct *t)
{
	return (__u64)t == bpf_get_current_task() ? stack_anywhere(t) : stack_of(c, t);
}

static __always_inline int woken(struct cpu *c, struct task_struct *t, __u8 flags)
{
	struct task_group *group = t->sched_task_group;
	struct thread *known;
	__u64 is = place_of(t, group, woken_stack(c, t), &known);
	if (!known)
		return 0;
	bool spurious = known->counted != 0;
	__u64 us = recorded;

	/*
	 * The thread was moved while it ran, and the wake-up was spurious. Its own CPU corrects the
	 * count at the next tick or switch.
	 */
	if (spurious && known->counted != is && t->on_cpu)
		return 0;
	/* No count changes, so the clock is not read: that is the most expensive part. */
	if (known->counted == is && !us)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	want(known, is, now);
	bool throttled = mark_queue && is && !spurious && held_back(t, false);
	if (throttled)
		hold_task(address(t), is, now);
	if (!us)
		return 0;
	if (is != us) {
		left(known, leaf_of(group), now);
		return 0;
	}
	introduce(known, address(t), flags & FLAG_NEW ? 0 : FLAG_MOVED, now, leaf_of(group));
	if (spurious)
		return 0;
	union any_record r = {
		.r = {.at = now, .kind = RECORD_WAKEUP, .flags = flags, .a = known->tid | (__u64)t->thread_info.cpu << 32, .b = known->waker},
	};
	known->waker = 0;
	if (throttled) {
		r.r.flags |= FLAG_THROTTLED;
		r.more.c = throttling_cgroup(address(&t->se));
		emit_more(&r);
	} else {
		emit(&r);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(sched_wakeup, struct task_struct *t)
{
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!c)
		return 0;
	enter(c);
	woken(c, t, 0);
	leave(c);
	return 0;
}

/*
 * If the event of a thread's last switch was missing, its slot is still in use. The next thread
 * with that stack finds it.
 */
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(sched_wakeup_new, struct task_struct *t)
{
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!c)
		return 0;
	enter(c);
	struct thread *left = thread_of(t, stack_of(c, t), false);
	if (left && left->stack) {
		want(left, 0, bpf_ktime_get_ns());
		release_slot(left);
	}
	woken(c, t, FLAG_NEW);
	leave(c);
	return 0;
}

/* Only where create_on is 0: task storage for a new thread is made before it runs. */
SEC("tp_btf/task_newtask")
int BPF_PROG(task_newtask, struct task_struct *t)
{
	bpf_task_storage_get(&threads, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

/*
 * sched_waking runs on the waker's CPU; sched_wakeup may run in an interrupt elsewhere. Attached
 * while recording.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *t)
{
	__u64 us = recorded;
	struct thread *known;
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!us || !c || place_of(t, t->sched_task_group, woken_stack(c, t), &known) != us || !known)
		return 0;
	struct task_struct *waker = bpf_get_current_task_btf();
	if (c->in_timer) {
		known->waker = holder(HOLDER_KERNEL, 0);
		return 0;
	}
	__u64 by = holder_of(address(waker), handle_of(waker->sched_task_group), bpf_ktime_get_ns());
	struct thread *ours = by >> 32 == HOLDER_THREAD ? thread_of(waker, stack_anywhere(waker), false) : NULL;
	known->waker = ours && ours->epoch == epoch ? holder(HOLDER_THREAD, ours->tid) : by;
	return 0;
}

/*
 * Attached while recording. A thread that is being woken moves too; it is not counted yet, because
 * it does not wait yet.
 */
SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *t, int to)
{
	struct thread *known = thread_of(t, stack_anywhere(t), false);
	__u64 us = recorded;

	if (!known || !us || known->counted != us || known->epoch != epoch)
		return 0;
	union any_record r = {.r = {.at = bpf_ktime_get_ns(), .kind = RECORD_MIGRATE, .a = known->tid, .b = to}};
	emit(&r);
	return 0;
}

/* Attached while recording. */
SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *t, const char *name)
{
	struct thread *known = thread_of(t, stack_anywhere(t), false);

	if (!known || !recorded || known->epoch != epoch)
		return 0;
	renamed(known, address(t), address((void *)name), bpf_ktime_get_ns());
	return 0;
}

SEC("tp_btf/cgroup_rmdir")
int BPF_PROG(cgroup_rmdir, struct cgroup *cgroup)
{
	__u64 id = cgroup->kn->id;
	bpf_map_delete_elem(&places, &id);
	/* A new group may get the address of the removed one; the generation keeps them apart. */
	__sync_fetch_and_add(&generation, 1);
	return 0;
}

/* The end of a cgroup's period: a row if it is watched, an event if it concerns the recording. */
__noinline int period(__u64 at, __u64 now, __u32 stopped_cpus)
{
	struct cfs_bandwidth *b = (void *)at;
	struct task_group *tg = (void *)b - bpf_core_field_offset(struct task_group, cfs_bandwidth);
	__u64 id = BPF_CORE_READ(tg, css.cgroup, kn, id);
	__u64 *watch = bpf_map_lookup_elem(&watched, &id);
	struct container *of = watch ? container_of_handle(*watch) : NULL;
	if (of && rows_on) {
		change(&of->width_word, &of->width_owed, of->width, LEVELS, &of->late, 0, now);
		change(&of->stopped_word, &of->stopped_owed, of->stopped, 2, &of->stopped_late, 0, now);
		__u64 integral = 0, ns = of->stopped[1], end = now & ~15ULL;
		for (__u32 i = 1; i < LEVELS; i++)
			integral += i * of->width[i];
		struct row r = {
			.handle = of->handle, .at = end, .length = end - of->row_at,
			.integral = integral - of->row_integral, .stopped = ns - of->row_stopped,
			.most = of->width_most, .throttled = stopped_cpus > 0,
		};
		if (bpf_ringbuf_output(&rows, &r, sizeof(r), BPF_RB_NO_WAKEUP)) {
			__sync_fetch_and_add(&rows_lost, 1); /* the next row has this period too */
		} else {
			of->row_at = end;
			of->row_integral = integral;
			of->row_stopped = ns;
			of->width_most = of->width_word & WORD_COUNT;
		}
	}
	__u64 us = recorded;
	if (!us)
		return 0;
	if (!bpf_map_lookup_elem(&ancestors, &id)) {
		struct cgroup_subsys_state *css = &tg->css;
		struct place *p = bpf_map_lookup_elem(&places, &id);
		__u64 handle = p && p->generation == generation ? p->handle : find(address(css), id);
		if (handle != us)
			return 0;
	}
	union any_record r = {.r = {.at = now, .kind = RECORD_PERIOD, .a = id}};
	r.r.b = (__u64)BPF_CORE_READ(b, nr_periods) << 32 | (__u32)BPF_CORE_READ(b, nr_throttled);
	r.period.quota = BPF_CORE_READ(b, quota);
	r.period.left = BPF_CORE_READ(b, runtime);
	if (bpf_core_field_exists(b->burst))
		r.period.burst = BPF_CORE_READ(b, burst);
	r.period.stopped_cpus = stopped_cpus;
	emit_sized(&r, sizeof(r.period));
	return 0;
}

/* CPUs of a throttled list, between a timer's entry and its exit. */
#define MAX_LISTED 256
struct listed {
	__u32 n;
	__u32 cpu[MAX_LISTED];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct listed);
} listed SEC(".maps");

/* list_one notes the CPU of an entry of a throttled list and returns the next entry. */
__noinline __u64 list_one(__u64 at)
{
	struct list_head *p = (void *)at;
	struct cfs_rq *q = (void *)p - bpf_core_field_offset(struct cfs_rq, throttled_list);
	__u32 zero = 0;
	struct listed *l = bpf_map_lookup_elem(&listed, &zero);

	if (!l)
		return 0;
	__u64 n = l->n; /* 64 bits: as in change */
	barrier_var(n);
	if (n >= MAX_LISTED)
		return 0;
	l->cpu[n] = BPF_CORE_READ(q, rq, cpu);
	l->n = n + 1;
	return (__u64)BPF_CORE_READ(p, next);
}

__noinline int list_throttled(__u64 at)
{
	struct cfs_bandwidth *b = (void *)at;
	__u32 zero = 0;
	struct listed *l = bpf_map_lookup_elem(&listed, &zero);
	if (!l)
		return 0;
	__u64 head = at + bpf_core_field_offset(struct cfs_bandwidth, throttled_cfs_rq);
	__u64 p = (__u64)BPF_CORE_READ(b, throttled_cfs_rq.next);

	l->n = 0;
	for (__u32 i = 0; i < MAX_LISTED && p && p != head; i++)
		p = list_one(p);
	return l->n;
}

static __always_inline struct cfs_bandwidth *bandwidth_of(struct hrtimer *timer)
{
	void *function = timer->function;

	if (&sched_cfs_period_timer && function == &sched_cfs_period_timer)
		return (void *)timer - bpf_core_field_offset(struct cfs_bandwidth, period_timer);
	if (&sched_cfs_slack_timer && function == &sched_cfs_slack_timer)
		return (void *)timer - bpf_core_field_offset(struct cfs_bandwidth, slack_timer);
	return NULL;
}

static __always_inline int expires(struct cpu *c, __u32 cpu, struct hrtimer *timer)
{
	struct task_struct *t = bpf_get_current_task_btf();
	c->in_timer = 1;
	if (c->group != (__u64)t->sched_task_group || c->generation != generation)
		sync(FLAG_RUNNABLE, bpf_ktime_get_ns());
	if (!wanted_on)
		return 0;
	if (c->held)
		release(cpu, bpf_ktime_get_ns(), 0);
	struct cfs_bandwidth *b = bandwidth_of(timer);
	if (!b)
		return 0;
	__u32 n = list_throttled(address(b));
	if (timer->function == &sched_cfs_period_timer)
		period(address(b), bpf_ktime_get_ns(), n);
	return 0;
}

/*
 * Runs at every timer, hence at every tick of a busy CPU, and corrects threads that were moved
 * while they ran. For a period's timer it sees the state before the refill.
 */
SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(hrtimer_expire_entry, struct hrtimer *timer)
{
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!c)
		return 0;
	enter(c);
	expires(c, cpu, timer);
	leave(c);
	return 0;
}

/* release_listed checks the entries of a listed CPU. It returns 0 after the last one. */
__noinline int release_listed(__u32 i, __u64 now)
{
	__u32 zero = 0;
	struct listed *l = bpf_map_lookup_elem(&listed, &zero);

	if (!l || i >= l->n)
		return 0;
	__u64 at = i; /* 64 bits: as in change */
	barrier_var(at);
	if (at >= MAX_LISTED)
		return 0;
	__u32 other = l->cpu[at];
	struct cpu *o = bpf_map_lookup_elem(&cpus, &other);
	if (o && o->held)
		release(other, now, 1);
	return 1;
}

static __always_inline int expired(struct cpu *c, struct hrtimer *timer)
{
	__u32 zero = 0;

	c->in_timer = 0;
	if (!bandwidth_of(timer))
		return 0;
	struct listed *l = bpf_map_lookup_elem(&listed, &zero);
	if (!l || !l->n)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	for (__u32 i = 0; i < MAX_LISTED; i++)
		if (!release_listed(i, now))
			break;
	l->n = 0;
	return 0;
}

/* After a refill or the return of slack: the CPUs that may run again. */
SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(hrtimer_expire_exit, struct hrtimer *timer)
{
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!c)
		return 0;
	enter(c);
	expired(c, timer);
	leave(c);
	return 0;
}

#include "socket.h"

SEC("tp_btf/sk_data_ready")
int BPF_PROG(sk_data_ready, struct sock *sk)
{
	return arrives(sk);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(sock_recv_length, struct sock *sk, int n, int flags)
{
	return received(sk, n, flags);
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(sock_send_length, struct sock *sk, int n, int flags)
{
	return sent(sk, n);
}

/* A packet is sent, by the thread that sends it unless its address was not known yet. */
SEC("tp_btf/net_dev_queue")
int BPF_PROG(net_dev_queue, struct sk_buff *skb)
{
	return datagram_sent(skb);
}

/* User space runs this on each CPU in turn: it records the holder. */
SEC("raw_tp")
int sync_cpu(void *ctx)
{
	__u32 cpu;
	struct cpu *c = this_cpu(&cpu);
	if (!c)
		return 0;
	struct task_struct *t = bpf_get_current_task_btf();
	__u64 now = bpf_ktime_get_ns();

	sync(FLAG_RUNNABLE, now);
	if (recorded) {
		union any_record r = {.r = {.at = now, .kind = RECORD_HOLDER}};
		struct thread *ours = c->handle == recorded ? thread_of(t, stack_anywhere(t), false) : NULL;
		/* The task may have arrived since the iterator passed. */
		if (ours)
			introduce(ours, address(t), FLAG_MOVED, now, leaf_of(t->sched_task_group));
		c->holder = ours && ours->epoch == epoch ? holder(HOLDER_THREAD, ours->tid) : holder_of(address(t), c->handle, now);
		r.r.a = c->holder;
		c->epoch = epoch;
		emit(&r);
	}
	return 0;
}

/*
 * User space runs this for all threads. It records which want a CPU, and writes a row for each
 * thread of the recorded container. A thread may change its state meanwhile. The program then reads
 * it again, and the thread's next event corrects it.
 */
SEC("iter/task")
int look_at_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *t = ctx->task;
	if (!t)
		return 0;
	struct task_group *group = t->sched_task_group;
	__u64 is = handle_of(group);
	if ((!is && create_on) || t->__state & TASK_DEAD)
		return 0;
	if (!create_on)
		bpf_task_storage_get(&threads, t, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct thread *known = thread_of(t, stack_anywhere(t), is);
	if (!known || !is)
		return 0;
	__u64 now = bpf_ktime_get_ns();
	bool delayed = bpf_core_field_exists(t->se.sched_delayed) && t->se.sched_delayed;
	bool wants = t->on_rq && !delayed && (t->__state == TASK_RUNNING || t->on_cpu);

	if (wants) {
		want(known, is, now);
		if (!t->on_cpu && t->__state != TASK_RUNNING)
			want(known, 0, bpf_ktime_get_ns());
	} else if (known->counted && !t->on_rq && !t->on_cpu) {
		want(known, 0, now); /* it went to sleep in a switch without an event */
	}
	bool held = false;
	if (wants && !t->on_cpu && held_back(t, false))
		held = true;
	if (held)
		hold_task(address(t), is, now);
	if (is != recorded)
		return 0;
	struct thread_row r = {
		.at = now, .cgroup = leaf_of(group), .utime = t->utime, .stime = t->stime, .tid = t->pid, .tgid = t->tgid,
		.state = !wants ? 0 : t->on_cpu ? 2 : 1, .cpu = t->thread_info.cpu, .nice = t->static_prio - DEFAULT_PRIO,
	};
	r.held = held;
	BPF_CORE_READ_INTO(&r.comm, t, comm);
	if (known->epoch != epoch)
		known->tid = r.tid;
	r.tid = known->tid;
	known->leaf = r.cgroup;
	known->renamed = 0;
	known->epoch = epoch;
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
