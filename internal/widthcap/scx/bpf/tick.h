/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the timer does once a millisecond. */
#ifndef SCX_TICK_H
#define SCX_TICK_H

struct surplus {
	__u32 row;
	__s32 left;
};

static long stop_surplus(__u32 i, struct surplus *s)
{
	struct cpu *c = cpu_at(i);

	if (!c || !s || s->left <= 0)
		return 1;
	if (!holds(&c->held, s->row))
		return 0;
	scx_bpf_kick_cpu(i, SCX_KICK_PREEMPT);
	s->left--;
	return 0;
}

/* wake_for wakes idle CPUs for the first threads of a row's queue. */
static __noinline int wake_for(__u64 n, __s32 room)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, n, 0)) {
		for (int i = 0; i < HEADS && i < room; i++) {
			p = bpf_iter_scx_dsq_next(&it);
			if (!p)
				break;
			__s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
			if (cpu >= 0)
				scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/*
 * A row becomes free in two steps, DRAIN apart, while no thread runs or waits by it:
 *
 *	no cap ──► drains ──► unlisted ──► free
 *
 * Unlisted, no thread finds it any more, and those that found it before look again at their next event: the generation is
 * new. A thread between its lookup and its queue has DRAIN to arrive there, also on a virtual CPU that does not run
 * meanwhile. Freed in one step under the lock, the row may be claimed at once. Rows below it are linked past it while it is
 * unlisted: a thread may wait in their queues for longer than that, and is not looked up meanwhile.
 */
struct round {
	__u64 now;
	__u32 ncpu;
	__u32 in_use;
};

static long look_at_row(__u32 i, struct round *round)
{
	struct row *r = bpf_map_lookup_elem(&rows, &i);
	__u32 n = i + 1, at = i / 64 % WORDS;
	__u64 bit = 1ULL << (i % 64), cgid;
	__u32 up = r ? r->parent : 0;
	struct control *k = control();
	struct row *above;
	struct wish w = {};
	__s32 waiting, over, room;
	bool has, rests, unlist;

	if (!r || !round)
		return 1;
	cgid = r->cgid;
	waiting = scx_bpf_dsq_nr_queued(n);
	if (!cgid && waiting <= 0)
		return 0;
	round->in_use++;
	above = row_at(up);
	if (above && above->drain == UNLISTED)
		__sync_val_compare_and_swap(&r->parent, up, above->parent);
	has = cgid && wish_of(cgid, &w);
	bpf_spin_lock(&r->lock);
	r->waiting = waiting;
	if (has && r->drain != UNLISTED) {
		r->wish = w;
		r->drain = 0;
	} else if (!r->drain) {
		r->drain = DRAINS;
		r->drained_at = round->now;
	}
	settle(r, round->now, round->ncpu);
	over = r->running - r->allow;
	room = r->allow - r->used;
	rests = r->drain && cgid && !r->used && waiting <= 0 && round->now - r->drained_at > DRAIN;
	unlist = rests && r->drain == DRAINS;
	if (unlist) {
		r->drain = UNLISTED;
		r->drained_at = round->now;
	} else if (rests) {
		r->parent = 0;
		r->cgid = 0;
	}
	bpf_spin_unlock(&r->lock);
	if (unlist) {
		bpf_map_delete_elem(&row_of, &cgid);
		if (k)
			__sync_fetch_and_add(&k->generation, 1);
	}
	if (rests)
		return 0;
	if (over > 0) {
		struct surplus s = {.row = n, .left = over};
		bpf_loop(round->ncpu, stop_surplus, &s, 0);
		r->cut += over - s.left;
	}
	if (waiting <= 0) {
		if (ready[at] & bit)
			__sync_fetch_and_and(&ready[at], ~bit);
		return 0;
	}
	if (!(ready[at] & bit))
		__sync_fetch_and_or(&ready[at], bit);
	if (!(ready_words & 1ULL << at))
		__sync_fetch_and_or(&ready_words, 1ULL << at);
	if (room > 0)
		wake_for(n, room);
	return 0;
}

static int on_tick(void *map, __u32 *key, struct ticker *t)
{
	struct round round = {.now = bpf_ktime_get_ns(), .ncpu = scx_bpf_nr_cpu_ids()};
	struct control *k = control();

	if (k)
		k->beat = round.now;
	bpf_loop(high_rows, look_at_row, &round, 0);
	if (scx_bpf_dsq_nr_queued(SHARED) > 0)
		wake_for(SHARED, HEADS);
	if (!round.in_use)
		ready_words = 0;
	bpf_timer_start(&t->timer, round.in_use ? TICK : IDLE_TICK, 0);
	return 0;
}

static __always_inline __s32 start_ticking(void)
{
	__u32 zero = 0;
	struct ticker *t = bpf_map_lookup_elem(&tickers, &zero);
	struct control *k = control();
	__s32 err;

	if (!t || !k)
		return -ENOMEM;
	k->beat = bpf_ktime_get_ns(); /* a cap that is set before the first tick has its time from here */
	err = bpf_timer_init(&t->timer, &tickers, CLOCK_MONOTONIC);
	if (!err)
		err = bpf_timer_set_callback(&t->timer, on_tick);
	return err ? err : bpf_timer_start(&t->timer, TICK, 0);
}

#endif
