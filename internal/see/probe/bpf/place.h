/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which watched container a task belongs to. */
#ifndef PROBE_PLACE_H
#define PROBE_PLACE_H

#define MAX_DEPTH 24

/* address converts a pointer to a number: the verifier lets global functions take numbers only. */
static __always_inline __u64 address(void *pointer)
{
	__u64 a = 0;
	bpf_probe_read_kernel(&a, sizeof(a), &pointer);
	return a;
}

/*
 * find walks from a task group's cgroup towards the root to the nearest watched one, and caches the
 * answer. The cpu controller's css is right on cgroup v1, on v2, and where v2 enables the
 * controller for some levels only.
 */
__noinline __u64 find(__u64 at, __u64 id)
{
	struct cgroup_subsys_state *css = (void *)at;
	struct place place = {.generation = generation};

	for (int i = 0; i < MAX_DEPTH && css; i++) {
		__u64 level = BPF_CORE_READ(css, cgroup, kn, id);
		__u64 *handle = bpf_map_lookup_elem(&watched, &level);
		if (handle) {
			place.handle = *handle;
			break;
		}
		css = BPF_CORE_READ(css, parent);
	}
	if (bpf_map_update_elem(&places, &id, &place, BPF_ANY))
		trouble(TROUBLE_PLACES);
	return place.handle;
}

/*
 * leaf_of returns the id of a task group's cgroup in the cpu controller's hierarchy, 0 for
 * autogroups, which have none. A program reads its task's group once, before its paths part: for
 * each path with a pointer read from a task, verifiers since Linux 6.4 look through all of the
 * kernel's types by name, four times (btf_nested_type_is_trusted).
 */
static __always_inline __u64 leaf_of(struct task_group *group)
{
	struct cgroup *cgroup = group->css.cgroup;
	return cgroup ? cgroup->kn->id : 0;
}

/* leaf_at is leaf_of for a task's address. */
static __always_inline __u64 leaf_at(__u64 task)
{
	struct task_struct *t = (void *)task;
	return BPF_CORE_READ(t, sched_task_group, css.cgroup, kn, id);
}

/* placed looks up a cgroup's container in the map, or finds it. */
__noinline __u64 placed(__u64 css, __u64 id)
{
	struct place *p = bpf_map_lookup_elem(&places, &id);
	if (p && p->generation == generation)
		return p->handle;
	return find(css, id);
}

static __always_inline __u64 handle_of(struct task_group *group)
{
	__u64 id = leaf_of(group);
	__u32 cpu = bpf_get_smp_processor_id();
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	if (!id || !c)
		return 0;
	struct memo *m = &c->memos[id & (MEMOS - 1)];
	__u64 now = (__u64)generation << 32; /* an entry of another generation does not match */
	__u64 handle = *(volatile __u64 *)&m->handle;
	if (m->id == id && m->check == (id ^ handle ^ now))
		return handle;
	handle = placed(address(&group->css), id);
	m->id = id;
	m->handle = handle;
	m->check = id ^ handle ^ now;
	return handle;
}

#endif
