/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Rows become free while other CPUs look them up. Each case runs once for every helper that a tick calls, with what another
 * CPU does at that moment. It prints what goes wrong, and returns 1.
 */
#include "host.h"

enum { WEB = 101, POD = 102, OTHER = 103 };

static long due;             /* helpers until the other CPU acts; below 0: it has, or it does not */
static void (*other_cpu)(void);

static void step(void)
{
	if (due < 0 || due-- > 0)
		return;
	other_cpu();
}

static struct kernfs_node web_node = {WEB}, pod_node = {POD};
static struct cgroup web_cgroup = {.kn = &web_node}, pod_cgroup = {.kn = &pod_node};
static struct task_group pod_group = {.css = {&pod_cgroup}}, web_group = {.css = {&web_cgroup}, .parent = &pod_group};
static struct task_struct task;
static struct thread thread;

static __u32 look_up(void) { return row_of_thread(&task, &thread); }

/* claim_all gives every free row but the last to other cgroups. */
static void claim_all(void)
{
	for (__u64 i = 0; i < ROWS - 1; i++)
		if (!host.rows[i].cgid) {
			__u64 id = OTHER + i;
			struct wish w = {.limit = MILLION};

			bpf_map_update_elem(&wishes, &id, &w, BPF_ANY);
			new_row(id);
		}
}

static void cap_again(void)
{
	cap(WEB, 1);
	look_up();
}

/* A cap that is set again while its row becomes free: the cgroup's thread is never under the cap of another one. */
static int set_again(long at)
{
	reset();
	memset(&thread, 0, sizeof(thread));
	task.sched_task_group = &web_group;
	due = -1;
	cap(WEB, 1);
	look_up();
	uncap(WEB);
	other_cpu = cap_again;
	due = at;
	for (int i = 0; i < 2 * (int)(DRAIN / TICK) + 50 && due >= 0; i++)
		tick();
	if (due >= 0)
		return 0; /* later than all of it */
	due = -1;
	for (int i = 0; i < 3 * (int)(DRAIN / TICK); i++) {
		claim_all();
		tick();
		__u32 n = look_up();
		__u64 of = n ? host.rows[n - 1].cgid : 0;

		if (of != WEB) {
			printf("helper %ld: the thread of cgroup %d is under the row of %llu\n", at, WEB, of);
			return 1;
		}
	}
	return 2;
}

/* A thread waits below a cap that is removed: its row is not linked to the one that another cgroup gets. */
static int waits_below(void)
{
	struct chain c;

	reset();
	memset(&thread, 0, sizeof(thread));
	task.sched_task_group = &web_group;
	due = -1;
	cap(POD, 2);
	cap(WEB, 1);
	__u32 n = look_up();
	host.queued[n] = 1;
	uncap(POD);
	for (int i = 0; i < 5 * (int)(DRAIN / TICK); i++) {
		tick();
		claim_all();
	}
	chain_of(n, &c);
	for (int i = 0; i < DEPTH && c.row[i]; i++)
		if (host.rows[c.row[i] - 1].cgid >= OTHER) {
			printf("the thread that waits is below cgroup %llu\n", host.rows[c.row[i] - 1].cgid);
			return 1;
		}
	return 0;
}

/* A row without a cap becomes free, and not before its threads have run. */
static int becomes_free(void)
{
	reset();
	memset(&thread, 0, sizeof(thread));
	task.sched_task_group = &web_group;
	due = -1;
	cap(WEB, 1);
	__u32 n = look_up();
	uncap(WEB);
	host.rows[n - 1].used = 1;
	for (int i = 0; i < 5 * (int)(DRAIN / TICK); i++)
		tick();
	if (host.rows[n - 1].cgid != WEB) {
		printf("a row is free while a thread has a slot of it\n");
		return 1;
	}
	host.rows[n - 1].used = 0;
	for (int i = 0; i < 3 * (int)(DRAIN / TICK); i++)
		tick();
	if (host.rows[n - 1].cgid) {
		printf("a row without a cap, threads and slots is never free\n");
		return 1;
	}
	return 0;
}

/* A cgroup that rests has saved since it got its cap, and not since its first thread ran. */
static int saves_from_its_cap(void)
{
	int failed = 0;

	for (int older = 0; older < 2; older++)
		for (int i = 0; i < 4; i++) {
			static const struct { __u64 rests, credit, saved; } c[] = {
				{0, 1000 * MS, 0}, {250 * MS, 1000 * MS, 500 * MS}, {900 * MS, 1000 * MS, 1000 * MS}, {3600000 * MS, 3600000 * MS, 3600000 * MS},
			};
			__u64 id = WEB;
			struct wish w = {.limit = 2 * MILLION, .credit = c[i].credit};

			reset();
			memset(&thread, 0, sizeof(thread));
			task.sched_task_group = &web_group;
			due = -1;
			w.since = older ? 0 : now_ns >> SINCE; /* 0: an older program set it */
			bpf_map_update_elem(&wishes, &id, &w, BPF_ANY);
			now_ns += c[i].rests;
			__s64 level = host.rows[look_up() - 1].level, off = level - (__s64)(older ? 0 : c[i].saved);
			if (off > (__s64)(4 * MS) || off < -(__s64)(4 * MS)) {
				printf("after a rest of %llu ms it has saved %lld ns\n", c[i].rests / MS, level);
				failed = 1;
			}
		}
	return failed;
}

int main(void)
{
	int failed = waits_below() + becomes_free() + saves_from_its_cap();
	long tried = 0;

	for (long at = 0;; at++) {
		int got = set_again(at);

		if (!got)
			break;
		tried++;
		if (got == 1 && ++failed > 5)
			break;
	}
	printf("%ld moments\n", tried);
	return failed != 0 || tried < 500;
}
