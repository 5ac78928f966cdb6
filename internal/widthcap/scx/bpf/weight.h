/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * cpu.weight and nice. A cgroup shares CPU time with its siblings that want some, by weight. So a
 * thread's virtual time passes faster by the product, over its cgroup and all above, of
 *
 *	(weights of all that want CPU time beside it) / (its own weight)
 */
#ifndef SCX_WEIGHT_H
#define SCX_WEIGHT_H

enum { ONE = 1024, MAX_FACTOR = 1 << 30 };
#define LONGEST (100 * MS) /* of one run that counts: times MAX_FACTOR it must fit 64 bits */

/* A cgroup. */
struct group {
	__u64 sum;    /* weights of what wants CPU time in it: threads, and cgroups below */
	__u64 threads; /* how many these are */
	__u64 given;  /* its weight in its parent's sum; 0 while nothing in it wants CPU time */
	__u64 weight; /* cpu.weight */
	__u64 parent; /* cgroup id, 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct group);
} groups SEC(".maps");

struct climb {
	__u64 cgid;
	__u64 weight; /* that comes or goes */
	__u64 many;   /* 1, or -1 */
};

/*
 * add_weight lets one thread or cgroup come to a cgroup or leave it. It goes on above if that changes
 * whether the cgroup wants CPU time.
 */
static long add_weight(__u32 i, struct climb *c)
{
	struct group *g = bpf_map_lookup_elem(&groups, &c->cgid);
	__u64 was, give, had;

	if (!g) {
		/* The root and autogroups have none; a thread that goes may outlive its cgroup. */
		if (c->cgid && c->many == 1)
			fault(NO_GROUP);
		return 1;
	}
	__sync_fetch_and_add(&g->sum, c->weight);
	was = __sync_fetch_and_add(&g->threads, c->many);
	if (was + c->many != 0 && was != 0)
		return 1;
	/*
	 * Two CPUs may be here at once: what was given is exchanged, so that the parent's sum is always
	 * that of what was given.
	 */
	c->weight = c->many = 0;
	for (int k = 0; k < 3; k++) {
		give = (__s64)g->threads > 0 ? g->weight : 0;
		had = __sync_lock_test_and_set(&g->given, give);
		c->weight += give - had;
		c->many += (give != 0) - (had != 0);
		if (((__s64)g->threads > 0) == (give != 0))
			break;
	}
	c->cgid = g->parent;
	return !c->cgid || !c->weight ? 1 : 0;
}

static __always_inline __u64 cgroup_of(struct task_struct *p)
{
	struct task_group *g = p->sched_task_group;
	struct cgroup *c = g ? g->css.cgroup : NULL;

	return c ? c->kn->id : 0;
}

/* come and go count a thread that wants CPU time. */
static __always_inline void come(struct task_struct *p, struct thread *t)
{
	struct climb c = {.cgid = cgroup_of(p), .weight = p->scx.weight, .many = 1};

	t->counted = c.cgid;
	t->weight = c.weight;
	bpf_loop(LEVELS, add_weight, &c, 0);
}

static __always_inline void go(struct thread *t)
{
	struct climb c = {.cgid = t->counted, .weight = -(__u64)t->weight, .many = -1};

	if (!t->counted)
		return;
	t->counted = 0;
	bpf_loop(LEVELS, add_weight, &c, 0);
}

struct factor {
	__u64 cgid, weight;
	__u64 row;    /* the cgroup of the thread's row; 0: it has none */
	__u64 thread; /* in 1/ONE */
	__u64 above;  /* the same for the row as a whole */
};

static long multiply(__u32 i, struct factor *f)
{
	struct group *g = bpf_map_lookup_elem(&groups, &f->cgid);
	__u64 sum, weight = f->weight;

	if (!g)
		return 1;
	sum = g->sum;
	if ((__s64)sum < (__s64)weight)
		sum = weight;
	if (!weight)
		weight = sum = 1;
	f->thread = f->thread * sum / weight;
	if (f->thread > MAX_FACTOR)
		f->thread = MAX_FACTOR;
	if (f->above)
		f->above = f->above * sum / weight;
	if (f->above > MAX_FACTOR)
		f->above = MAX_FACTOR;
	if (f->cgid == f->row)
		f->above = ONE;
	f->weight = g->weight;
	f->cgid = g->parent;
	return f->cgid ? 0 : 1;
}

static __always_inline void factor_of(struct task_struct *p, __u64 row, struct factor *f)
{
	f->cgid = cgroup_of(p);
	f->weight = p->scx.weight;
	f->row = row;
	f->thread = ONE;
	f->above = 0;
	bpf_loop(LEVELS, multiply, f, 0);
}

/* new_group notes a cgroup that the kernel tells of, parents first. */
static __always_inline __s32 new_group(__u64 cgid, __u64 parent, __u64 weight)
{
	struct group g = {.weight = weight, .parent = parent};

	return bpf_map_update_elem(&groups, &cgid, &g, BPF_ANY);
}

static __always_inline void weigh_group(__u64 cgid, __u64 weight)
{
	struct group *g = bpf_map_lookup_elem(&groups, &cgid);
	struct climb c = {};

	if (!g)
		return;
	g->weight = weight;
	if ((__s64)g->threads <= 0 || !g->parent)
		return;
	c.cgid = g->parent;
	c.weight = weight - __sync_lock_test_and_set(&g->given, weight);
	bpf_loop(1, add_weight, &c, 0);
}

#endif
