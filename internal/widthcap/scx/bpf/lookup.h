/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* From a thread to the row of its nearest capped cgroup. */
#ifndef SCX_LOOKUP_H
#define SCX_LOOKUP_H

/* wish_of copies what holds for a cgroup: a cap that was set, else its own cpu.max. */
static __always_inline bool wish_of(__u64 cgid, struct wish *w)
{
	struct wish *found = bpf_map_lookup_elem(&wishes, &cgid);

	if (!found)
		found = bpf_map_lookup_elem(&limits, &cgid);
	if (found)
		*w = *found;
	return found;
}

struct claim {
	__u64 cgid;
	__u32 row;
};

static long claim_row(__u32 i, struct claim *c)
{
	struct row *r = bpf_map_lookup_elem(&rows, &i);

	if (!r || !c)
		return 1;
	if (r->cgid || __sync_val_compare_and_swap(&r->cgid, 0, c->cgid))
		return 0;
	c->row = i + 1;
	return 1;
}

static char full[] = "no room for the caps and limits of so many cgroups";

/* new_row makes the row of a cgroup, with what it has saved since it got its cap. */
__noinline __u32 new_row(__u64 cgid)
{
	struct claim c = {.cgid = cgid};
	struct wish w = {};
	__u64 now = bpf_ktime_get_ns();
	__u32 ncpu = scx_bpf_nr_cpu_ids(), *had;
	struct row *r;

	bpf_loop(max_rows, claim_row, &c, 0);
	r = row_at(c.row);
	if (!r) {
		unsigned long long none = 0;
		scx_bpf_error_bstr(full, &none, sizeof(none));
		return 0;
	}
	if (bpf_map_update_elem(&row_of, &cgid, &c.row, BPF_NOEXIST)) {
		r->cgid = 0; /* another CPU made it at the same moment */
		had = bpf_map_lookup_elem(&row_of, &cgid);
		return had ? *had : 0;
	}
	wish_of(cgid, &w);
	bpf_spin_lock(&r->lock);
	r->wish = w;
	r->level = saved(&w, now);
	r->at_cap = r->waited = r->joined = r->cut = 0;
	r->up = r->wide = r->drain = r->most = 0;
	r->at = now;
	settle(r, now, ncpu);
	bpf_spin_unlock(&r->lock);
	r->vtime = vnow;
	for (int i = 0; i < 16; i++) {
		__u64 high = high_rows;
		if (high >= c.row || __sync_val_compare_and_swap(&high_rows, high, c.row) == high)
			break;
	}
	return c.row;
}

/* row_of_group walks from a task group upwards and links the rows that it meets. */
static __noinline __u32 row_of_group(struct task_struct *p)
{
	struct task_group *g = p->sched_task_group;
	__u32 first = 0, below = 0;

	for (int i = 0; i < LEVELS && g; i++) {
		struct cgroup *c = g->css.cgroup;
		__u64 cgid = c ? c->kn->id : 0;
		__u32 n = 0, *had;
		struct wish w;

		if (cgid && wish_of(cgid, &w)) {
			had = bpf_map_lookup_elem(&row_of, &cgid);
			n = had ? *had : new_row(cgid);
		}
		if (n) {
			struct row *r = row_at(below);
			if (r)
				r->parent = n;
			if (!first)
				first = n;
			below = n;
		}
		g = g->parent;
	}
	struct row *r = row_at(below);
	if (r)
		r->parent = 0;
	if (g)
		fault(TOO_DEEP);
	return first;
}

/* row_of_thread returns the nearest row + 1, 0 for none. It looks up only what has changed. */
static __always_inline __u32 row_of_thread(struct task_struct *p, struct thread *t)
{
	struct control *k = control();
	__u64 group = (__u64)p->sched_task_group;
	__u32 generation = k ? k->generation : 0, n;
	struct row *r;

	if (t->known && t->group == group && t->generation == generation)
		return t->row;
	n = row_of_group(p);
	if (!t->known || t->row != n) {
		r = row_at(n); /* virtual times of two queues cannot be compared */
		p->scx.dsq_vtime = r ? r->vnow : vnow;
	}
	t->row = n;
	t->group = group;
	t->generation = generation;
	t->known = 1;
	return n;
}

#endif
