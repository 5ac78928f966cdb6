/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Slots: a thread of a capped cgroup runs only with one of each capped cgroup that it belongs to. */
#ifndef SCX_SLOTS_H
#define SCX_SLOTS_H

static __always_inline bool holds(const struct chain *c, __u32 n)
{
	for (int i = 0; i < DEPTH; i++)
		if (c->row[i] == n)
			return true;
	return false;
}

static __always_inline void chain_of(__u32 n, struct chain *c)
{
	for (int i = 0; i < DEPTH; i++) {
		struct row *r = row_at(n);
		c->row[i] = n;
		n = r ? r->parent : 0;
	}
	if (n)
		fault(TOO_DEEP);
}

/* step is a walk along a chain. */
struct step {
	struct chain left;
	struct chain leaving;
	__u64 now;
	__u32 ncpu;
	__s32 used, running;
	__s32 taken;
};

/* next_row takes the first row off what is left. */
static __always_inline __u32 next_row(struct step *s)
{
	__u32 n = s->left.row[0];

	s->left.row[0] = s->left.row[1];
	s->left.row[1] = s->left.row[2];
	s->left.row[2] = s->left.row[3];
	s->left.row[3] = 0;
	return n;
}

static long change_row(__u32 i, struct step *s)
{
	__u32 n = next_row(s);
	struct row *r = row_at(n);
	bool unbalanced;

	if (!r) {
		if (n)
			fault(NO_ROW);
		return 1;
	}
	bpf_spin_lock(&r->lock);
	settle(r, s->now, s->ncpu);
	r->used += s->used;
	r->running += s->running;
	if (r->running > r->most)
		r->most = r->running;
	if (s->used > 0 && s->running > 0 && r->used > r->allow)
		r->joined++;
	unbalanced = r->used < 0 || r->running < 0;
	bpf_spin_unlock(&r->lock);
	if (unbalanced)
		fault(UNBALANCED);
	return 0;
}

/* change adds to the slots and the running threads of every row of a chain. */
__noinline int change(struct chain *c, __s32 used, __s32 running, __u64 now)
{
	if (!c)
		return 0;
	struct step s = {.left = *c, .now = now, .ncpu = scx_bpf_nr_cpu_ids(), .used = used, .running = running};
	bpf_loop(DEPTH, change_row, &s, 0);
	return 0;
}

static __always_inline void give_back(struct chain *c, __u64 now)
{
	change(c, -1, 0, now);
	__builtin_memset(c, 0, sizeof(*c));
}

static long take_row(__u32 i, struct step *s)
{
	__u32 n = next_row(s);
	struct row *r = row_at(n);
	bool ok;

	if (!r)
		return 1;
	__s32 more = holds(&s->leaving, n);
	bpf_spin_lock(&r->lock);
	settle(r, s->now, s->ncpu);
	ok = r->used < r->allow + more;
	if (ok)
		r->used++;
	bpf_spin_unlock(&r->lock);
	if (!ok) {
		s->used = 1;
		return 1;
	}
	s->taken++;
	return 0;
}

static long untake_row(__u32 i, struct step *s)
{
	struct row *r = row_at(next_row(s));

	if (!r)
		return 1;
	bpf_spin_lock(&r->lock);
	r->used--;
	bpf_spin_unlock(&r->lock);
	return 0;
}

/*
 * take takes a slot of every row of a chain, or of none. A row whose slot the leaving thread of this
 * CPU holds has one more: that thread hands it on.
 */
__noinline int take(struct chain *c, struct chain *leaving, __u64 now)
{
	if (!c || !leaving)
		return 0;
	struct step s = {.left = *c, .leaving = *leaving, .now = now, .ncpu = scx_bpf_nr_cpu_ids()};
	bpf_loop(DEPTH, take_row, &s, 0);
	if (!s.used)
		return 1;
	s.left = *c;
	bpf_loop(s.taken, untake_row, &s, 0);
	return 0;
}

/* has_room guesses whether take would succeed. */
static __always_inline bool has_room(const struct chain *c, const struct chain *leaving, __s32 more)
{
	for (int i = 0; i < DEPTH; i++) {
		struct row *r = row_at(c->row[i]);
		if (!r)
			break;
		if (r->used >= r->allow + more + (leaving && holds(leaving, c->row[i])))
			return false;
	}
	return true;
}

#endif
