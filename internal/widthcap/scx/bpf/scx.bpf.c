//go:build ignore
/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A scheduler that caps how many threads of a cgroup run at one moment.
 *
 *	wakes up ──► queue of its row ──► a CPU takes a slot of the row ──► runs ──► gives it back
 *
 * Threads without a cap share one queue in the order of virtual time, and take an idle CPU at once
 * where there is one. A capped cgroup has a row and a queue of its own. A CPU takes a slot before it
 * takes a thread from that queue. So CPUs that dispatch at the same moment do not exceed the cap.
 *
 * Slots belong to CPUs (struct cpu), not to threads: taken in dispatch, confirmed in running, given
 * back in stopping. A CPU that took a slot for a thread that never began gives it back at its next
 * dispatch. Every slot that was taken keeps its row, wherever the thread is moved meanwhile.
 *
 * Without cpu_online and cpu_offline the kernel ends the scheduler when a CPU goes or comes.
 *
 * A timer settles every row once a millisecond: it ends slices where a cap has fallen below what
 * runs, and wakes idle CPUs where there is a slot for a thread that waits.
 *
 * Limits. What passes one is counted (faults in scx.h), or ends the scheduler with its reason:
 *
 *	caps and cpu.max	as many cgroups as there are rows; one more cap ends the scheduler, the
 *				cpu.max of one more does not bind
 *	depth			DEPTH capped cgroups above one another, among the lowest LEVELS cgroups
 *	CPUs			CPUS; a CPU that goes or comes ends the scheduler
 *	cgroups			65536 with a weight; the kernel refuses to make one more
 *	joining			a thread that runs when its cgroup gets a cap, or when it joins, runs
 *				above the cap until its slice ends
 *	waking			a tick finds idle CPUs for the first HEADS threads of a row; the others wait
 *				for these CPUs to dispatch, or for the next tick
 *	exactness		caps and credit are looked at once a tick, so that a burst may overdraw
 *				its credit by a millisecond of its width
 *	cpu.idle		is not told by the kernel (6.18): such a cgroup shares by its weight
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "scx.h"
#include "bucket.h"
#include "slots.h"
#include "lookup.h"
#include "weight.h"
#include "tick.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline void mark_ready(__u32 n)
{
	__u32 at = (n - 1) / 64 % WORDS;
	__u64 bit = 1ULL << ((n - 1) % 64);

	if (!(ready[at] & bit))
		__sync_fetch_and_or(&ready[at], bit);
	if (!(ready_words & 1ULL << at))
		__sync_fetch_and_or(&ready_words, 1ULL << at);
}

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(unthrottle_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
	bool idle = false;
	__u32 n = t ? row_of_thread(p, t) : 0;
	__s32 cpu;

	if (n) {
		struct chain c;
		chain_of(n, &c);
		if (!has_room(&c, NULL, 0))
			return prev_cpu;
	}
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);
	if (idle && !n)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE, 0);
	else if (idle)
		t->claimed = 1;
	return cpu;
}

/* wake_idle wakes the thread's CPU if it is idle, or another one where it may run; false: none is idle. */
static __always_inline bool wake_idle(struct task_struct *p)
{
	__s32 cpu = scx_bpf_task_cpu(p);

	if (p->nr_cpus_allowed == 1 || !scx_bpf_test_and_clear_cpu_idle(cpu))
		cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu < 0)
		return false;
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return true;
}

struct victim {
	__u32 row;
	__s32 cpu;
	__u64 now;
	__u64 latest;
};

static long look_for_victim(__u32 i, struct victim *v)
{
	struct cpu *c = cpu_at(i);
	__u64 at;

	if (!c || !v)
		return 1;
	if (c->held.row[0] != v->row)
		return 0;
	at = c->vtime + (v->now - c->began);
	if (before(v->latest, at)) {
		v->latest = at;
		v->cpu = i;
	}
	return 0;
}

/* stop_for has the thread of the row that is furthest ahead of p give its slot to p. */
static __always_inline void stop_for(struct task_struct *p, __u32 n, struct row *r, __u64 vtime)
{
	struct victim v = {.row = n, .cpu = -1, .now = bpf_ktime_get_ns(), .latest = vtime + SLICE / 4};

	if (v.now - r->preempted_at < PREEMPT_GAP)
		return;
	bpf_loop(scx_bpf_nr_cpu_ids(), look_for_victim, &v, 0);
	if (v.cpu < 0)
		return;
	r->preempted_at = v.now;
	scx_bpf_kick_cpu(v.cpu, SCX_KICK_PREEMPT);
}

/*
 * stop_other has a thread without a cap give its CPU to p, whose row has had less than its share: the one furthest ahead of
 * the row. Otherwise p waits until a slice ends, with a place free. At its next dispatch that CPU serves the row, which is due.
 */
static __noinline int stop_other(struct task_struct *p, struct row *r)
{
	__u64 now = bpf_ktime_get_ns(), latest;
	struct bpf_iter_num it;
	__s32 cpu = -1;
	struct cpu *c;
	int *i;

	if (!p || !r)
		return 0;
	latest = r->vtime + SLICE / 4;
	if (before(vnow, latest))
		return 0;
	bpf_iter_num_new(&it, 0, scx_bpf_nr_cpu_ids());
	while ((i = bpf_iter_num_next(&it))) {
		c = cpu_at(*i);
		if (!c || c->last || now - c->began < PREEMPT_GAP || now - c->asked < PREEMPT_GAP || before(c->vtime, latest) ||
		    !bpf_cpumask_test_cpu(*i, p->cpus_ptr))
			continue;
		latest = c->vtime;
		cpu = *i;
	}
	bpf_iter_num_destroy(&it);
	c = cpu_at(cpu);
	if (cpu < 0 || !c)
		return 0;
	c->asked = now;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	return 0;
}

SEC("struct_ops/enqueue")
void BPF_PROG(unthrottle_enqueue, struct task_struct *p, __u64 flags)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
	__u64 vtime;
	__u32 n;
	struct row *r;
	bool claimed;

	if (!t)
		fault(NO_THREAD);
	if (!t || (p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SLICE, flags | (flags & SCX_ENQ_WAKEUP ? SCX_ENQ_PREEMPT : 0));
		return;
	}
	n = row_of_thread(p, t);
	r = row_at(n);
	vtime = p->scx.dsq_vtime;
	claimed = t->claimed;
	t->claimed = 0;
	if (!r) {
		scx_bpf_dsq_insert_vtime(p, SHARED, SLICE, vtime, flags);
		wake_idle(p);
		return;
	}
	scx_bpf_dsq_insert_vtime(p, n, SLICE, vtime, flags);
	mark_ready(n);
	struct chain c;
	chain_of(n, &c);
	if (has_room(&c, NULL, 0)) {
		if (!claimed && !wake_idle(p) && flags & SCX_ENQ_WAKEUP)
			stop_other(p, r);
	} else if (flags & SCX_ENQ_WAKEUP) {
		stop_for(p, n, r, vtime);
	}
}

/* serve moves a thread of a row here, with slots for it. */
__noinline int serve(struct cpu *c, __u32 n, __u64 now)
{
	struct chain chain;

	if (!c || !n || scx_bpf_dsq_nr_queued(n) <= 0)
		return 0;
	chain_of(n, &chain);
	if (!has_room(&chain, &c->held, 0) || !take(&chain, &c->held, now))
		return 0;
	if (scx_bpf_dsq_move_to_local(n)) {
		c->pending = chain;
		return 1;
	}
	change(&chain, -1, 0, now);
	return 0;
}

struct serving {
	struct cpu *cpu;
	__u64 now;
	__u64 words;
	__u64 bits;
	__u32 at;
	__u32 first;
	__u32 due; /* only rows whose turn it is among all threads */
	__u32 done;
};

/* lowest returns the number of the lowest bit. It is global, so that the verifier does not follow every bit. */
__noinline __u32 lowest(__u64 x)
{
	__u32 n = 0;

	x &= -x;
	n |= (x & 0xFFFFFFFF00000000ULL ? 32 : 0);
	n |= (x & 0xFFFF0000FFFF0000ULL ? 16 : 0);
	n |= (x & 0xFF00FF00FF00FF00ULL ? 8 : 0);
	n |= (x & 0xF0F0F0F0F0F0F0F0ULL ? 4 : 0);
	n |= (x & 0xCCCCCCCCCCCCCCCCULL ? 2 : 0);
	n |= (x & 0xAAAAAAAAAAAAAAAAULL ? 1 : 0);
	return n;
}

/* serve_next tries the next row whose bit is set, from row first on and around. */
static long serve_next(__u32 i, struct serving *s)
{
	__u32 n;
	struct row *r;

	if (!s)
		return 1;
	if (!s->bits) {
		if (!s->words)
			return 1;
		__u64 from = s->words >> s->first << s->first;
		s->at = lowest(from ? from : s->words) % WORDS;
		s->words &= ~(1ULL << s->at);
		s->bits = ready[s->at];
		if (!s->bits)
			return 0;
	}
	n = s->at * 64 + lowest(s->bits) % 64 + 1;
	s->bits &= s->bits - 1;
	r = row_at(n);
	if (!r || (s->due && before(vnow, r->vtime)))
		return 0;
	s->done = serve(s->cpu, n, s->now);
	return s->done ? 1 : 0;
}

static __always_inline bool serve_any(struct cpu *c, __u32 first, bool due, __u64 now)
{
	struct serving s = {.cpu = c, .now = now, .words = ready_words, .first = first / 64 % WORDS, .due = due};

	bpf_loop(PROBES + WORDS, serve_next, &s, 0);
	return s.done;
}

/* may_go_on reports whether the thread of this CPU may have another slice. */
static __always_inline bool may_go_on(const struct chain *held) { return has_room(held, NULL, 1); }

SEC("struct_ops/dispatch")
void BPF_PROG(unthrottle_dispatch, __s32 cpu, struct task_struct *prev)
{
	struct cpu *c = cpu_at(cpu);
	__u64 now = bpf_ktime_get_ns();
	struct row *last;
	bool shared;

	if (!c) {
		fault(NO_CPU);
		return;
	}
	if (c->pending.row[0])
		give_back(&c->pending, now);
	shared = scx_bpf_dsq_nr_queued(SHARED) > 0;
	if (ready_words) {
		last = row_at(c->last);
		if (last && (!shared || !before(vnow, last->vtime)) && serve(c, c->last, now))
			return;
		if (serve_any(c, c->last + cpu, shared, now))
			return;
	}
	if (shared && scx_bpf_dsq_move_to_local(SHARED))
		return;
	if (shared && ready_words && serve_any(c, c->last + cpu, false, now))
		return;
	if (prev && prev->scx.flags & SCX_TASK_QUEUED && may_go_on(&c->held))
		prev->scx.slice = SLICE;
}

SEC("struct_ops/runnable")
void BPF_PROG(unthrottle_runnable, struct task_struct *p, __u64 flags)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);

	if (!t) {
		fault(NO_THREAD);
		return;
	}
	come(p, t);
	if (!(flags & SCX_ENQ_WAKEUP))
		return;
	/* Who slept long comes before the others, but has no claim to the time that it slept. */
	struct row *r = row_at(row_of_thread(p, t));
	__u64 least = (r ? r->vnow : vnow) - SLICE;
	if (before(p->scx.dsq_vtime, least))
		p->scx.dsq_vtime = least;
	t->woke = 1;
}

SEC("struct_ops/quiescent")
void BPF_PROG(unthrottle_quiescent, struct task_struct *p, __u64 flags)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);

	if (t)
		go(t);
}

/*
 * pass moves the virtual time of a queue towards that of a thread that begins. Threads that slept begin
 * before their turn, so they do not move it back.
 */
static __always_inline void pass(__u64 *queue, __u64 vtime, bool woke)
{
	__s64 on = vtime - *queue;

	if (on > 0 || !woke)
		*queue += on >> 3;
}

SEC("struct_ops/running")
void BPF_PROG(unthrottle_running, struct task_struct *p)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
	struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
	__u64 now = bpf_ktime_get_ns(), vtime = p->scx.dsq_vtime;
	struct row *r;
	__u32 n;

	if (!t || !c) {
		fault(t ? NO_CPU : NO_THREAD);
		return;
	}
	n = row_of_thread(p, t);
	r = row_at(n);
	c->began = now;
	c->vtime = vtime;
	c->last = n;
	if (!r) {
		pass(&vnow, vtime, t->woke);
		return;
	}
	if (c->pending.row[0] == n) {
		c->held = c->pending;
		__builtin_memset(&c->pending, 0, sizeof(c->pending));
		change(&c->held, 0, 1, now);
	} else {
		/* It ran when the scheduler came, or joined: above the cap, but counted, so that no other begins. */
		if (c->pending.row[0])
			give_back(&c->pending, now);
		chain_of(n, &c->held);
		change(&c->held, 1, 1, now);
	}
	pass(&r->vnow, vtime, t->woke);
	if (before(r->vtime, vnow - LAG))
		r->vtime = vnow - LAG;
	else if (before(vnow, r->vtime) && scx_bpf_dsq_nr_queued(SHARED) <= 0)
		vnow = r->vtime;
}

SEC("struct_ops/stopping")
void BPF_PROG(unthrottle_stopping, struct task_struct *p, bool runnable)
{
	struct cpu *c = cpu_at(scx_bpf_task_cpu(p));
	__u64 now = bpf_ktime_get_ns(), used;
	struct thread *t = bpf_task_storage_get(&threads, p, 0, 0);
	struct factor f = {};
	struct row *r;

	if (!c) {
		fault(NO_CPU);
		return;
	}
	if (t)
		t->woke = 0;
	r = row_at(c->held.row[0]);
	factor_of(p, r ? r->cgid : 0, &f);
	used = now - c->began < LONGEST ? now - c->began : LONGEST;
	p->scx.dsq_vtime += used * f.thread / ONE;
	if (!r)
		return;
	__sync_fetch_and_add(&r->vtime, used * (f.above ? f.above : f.thread) / ONE);
	change(&c->held, -1, -1, now);
	__builtin_memset(&c->held, 0, sizeof(c->held));
}

/*
 * A thread that yields comes after those of its queue that have a slice less to their account, as under the fair class. Else one that spins
 * and yields until another has run, as a collector's threads do at their end, is served before that one for as long as it is behind it.
 */
SEC("struct_ops/yield")
bool BPF_PROG(unthrottle_yield, struct task_struct *from, struct task_struct *to)
{
	struct thread *t = bpf_task_storage_get(&threads, from, 0, 0);
	struct row *r = t ? row_at(row_of_thread(from, t)) : NULL;
	__u64 now = r ? r->vnow : vnow, slice;
	struct factor f = {};

	if (to) /* it wants that one to run, which the fair class takes as a hint */
		return false;
	factor_of(from, 0, &f);
	slice = SLICE * f.thread / ONE;
	if (!before(now + slice, from->scx.dsq_vtime))
		from->scx.dsq_vtime += slice;
	from->scx.slice = 0;
	return false;
}

/* A thread of a higher class takes the CPU. What waits here goes back to its queue, without slots. */
SEC("struct_ops/cpu_release")
void BPF_PROG(unthrottle_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	struct cpu *c = cpu_at(cpu);

	scx_bpf_reenqueue_local();
	if (c && c->pending.row[0])
		give_back(&c->pending, bpf_ktime_get_ns());
}

SEC("struct_ops.s/init_task")
__s32 BPF_PROG(unthrottle_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	return bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -ENOMEM;
}

static __always_inline void limit_of_cgroup(__u64 cgid, __u64 period, __u64 quota, __u64 burst)
{
	struct control *k = control();

	if (quota == ~0ULL || !period) {
		bpf_map_delete_elem(&limits, &cgid);
	} else {
		struct wish w = {.limit = quota * MILLION / period, .credit = (quota + burst) * 1000, .since = bpf_ktime_get_ns() >> SINCE};
		if (bpf_map_update_elem(&limits, &cgid, &w, BPF_ANY))
			fault(LOST_LIMIT);
	}
	if (k)
		__sync_fetch_and_add(&k->generation, 1);
}

SEC("struct_ops.s/cgroup_init")
__s32 BPF_PROG(unthrottle_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	struct cgroup_subsys_state *parent = cgrp->self.parent;
	struct cgroup *above = parent ? parent->cgroup : NULL;

	if (args->bw_quota_us != ~0ULL)
		limit_of_cgroup(cgrp->kn->id, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return new_group(cgrp->kn->id, above ? above->kn->id : 0, args->weight);
}

SEC("struct_ops/cgroup_set_weight")
void BPF_PROG(unthrottle_cgroup_set_weight, struct cgroup *cgrp, __u32 weight)
{
	weigh_group(cgrp->kn->id, weight);
}

SEC("struct_ops/cgroup_set_bandwidth")
void BPF_PROG(unthrottle_cgroup_set_bandwidth, struct cgroup *cgrp, __u64 period, __u64 quota, __u64 burst)
{
	limit_of_cgroup(cgrp->kn->id, period, quota, burst);
}

SEC("struct_ops/cgroup_exit")
void BPF_PROG(unthrottle_cgroup_exit, struct cgroup *cgrp)
{
	__u64 cgid = cgrp->kn->id;

	bpf_map_delete_elem(&wishes, &cgid);
	bpf_map_delete_elem(&limits, &cgid);
	bpf_map_delete_elem(&groups, &cgid);
}

static long make_queue(__u32 i, __s32 *err)
{
	if (err)
		*err = scx_bpf_create_dsq(i + 1, -1);
	return err && *err;
}

SEC("struct_ops.s/init")
__s32 BPF_PROG(unthrottle_init)
{
	__s32 err = scx_bpf_create_dsq(SHARED, -1);

	if (!err)
		bpf_loop(max_rows, make_queue, &err, 0);
	return err ? err : start_ticking();
}

SEC("struct_ops/exit")
void BPF_PROG(unthrottle_exit, struct scx_exit_info *info)
{
	__u32 zero = 0;
	struct farewell *f = bpf_map_lookup_elem(&farewells, &zero);

	if (!f)
		return;
	f->code = info->exit_code;
	bpf_probe_read_kernel_str(f->reason, sizeof(f->reason), info->reason);
	bpf_probe_read_kernel_str(f->message, sizeof(f->message), info->msg);
	f->kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops unthrottle = {
	.select_cpu = (void *)unthrottle_select_cpu,
	.enqueue = (void *)unthrottle_enqueue,
	.dispatch = (void *)unthrottle_dispatch,
	.runnable = (void *)unthrottle_runnable,
	.running = (void *)unthrottle_running,
	.stopping = (void *)unthrottle_stopping,
	.quiescent = (void *)unthrottle_quiescent,
	.yield = (void *)unthrottle_yield,
	.cpu_release = (void *)unthrottle_cpu_release,
	.init_task = (void *)unthrottle_init_task,
	.cgroup_init = (void *)unthrottle_cgroup_init,
	.cgroup_exit = (void *)unthrottle_cgroup_exit,
	.cgroup_set_weight = (void *)unthrottle_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)unthrottle_cgroup_set_bandwidth,
	.init = (void *)unthrottle_init,
	.exit = (void *)unthrottle_exit,
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
	.timeout_ms = 10000,
	.name = "unthrottle",
};
