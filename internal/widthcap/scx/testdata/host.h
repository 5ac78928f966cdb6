/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the scheduler's headers ask of the kernel, in the memory of one thread, so that a C compiler of the host can build
 * them. The program that includes this defines step, which each helper calls first: what other CPUs do just then.
 */
#ifndef HOST_H
#define HOST_H
#include "../bpf/kernel.h"

#define SEC(name)
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name
#define bpf_spin_lock(l) ((void)(l))
#define bpf_spin_unlock(l) ((void)(l))
#define bpf_loop(n, f, c, flags) ({ for (__u32 i_ = 0; i_ < (n) && !f(i_, c); i_++) {} 0; })

enum { ROWS = 8, CGROUPS = 16, NCPU = 4 };

int printf(const char *format, ...);
void *memset(void *to, int byte, unsigned long size);

static void step(void);
static __u64 now_ns;

static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
static long bpf_map_delete_elem(void *map, const void *key);
static __u64 bpf_ktime_get_ns(void) { return now_ns; }
static long bpf_timer_init(struct bpf_timer *t, void *map, __u64 flags) { return 0; }
static long bpf_timer_set_callback(struct bpf_timer *t, void *f) { return 0; }
static long bpf_timer_start(struct bpf_timer *t, __u64 ns, __u64 flags) { return 0; }

#define max_rows max_rows_of_the_loader
#include "../bpf/scx.h"
#undef max_rows
#define max_rows ROWS
#include "../bpf/bucket.h"
#include "../bpf/slots.h"
#include "../bpf/lookup.h"
#include "../bpf/tick.h"

/* Values by cgroup id. */
struct table {
	__u64 key[CGROUPS];
	bool set[CGROUPS];
};

static struct {
	struct row rows[ROWS];
	struct cpu cpus[NCPU];
	struct control control;
	struct table row_of_keys, wish_keys, limit_keys;
	__u32 row_of[CGROUPS];
	struct wish wishes[CGROUPS], limits[CGROUPS];
	__s32 queued[ROWS + 1];
	__u64 faults[FAULTS];
	const char *error;
} host;

static int place_of(struct table *t, __u64 key, bool make)
{
	for (int i = 0; i < CGROUPS; i++)
		if (t->set[i] && t->key[i] == key)
			return i;
	for (int i = 0; make && i < CGROUPS; i++)
		if (!t->set[i]) {
			t->set[i] = 1;
			t->key[i] = key;
			return i;
		}
	return -1;
}

static struct table *keys_of(void *map)
{
	return map == &row_of ? &host.row_of_keys : map == &wishes ? &host.wish_keys : &host.limit_keys;
}

static void *value_at(void *map, int i)
{
	if (i < 0)
		return NULL;
	return map == &row_of ? (void *)&host.row_of[i] : map == &wishes ? (void *)&host.wishes[i] : (void *)&host.limits[i];
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 at = *(const __u32 *)key;

	step();
	if (map == &rows)
		return at < ROWS ? &host.rows[at] : NULL;
	if (map == &cpus)
		return at < NCPU ? &host.cpus[at] : NULL;
	if (map == &controls)
		return &host.control;
	if (map == &faults)
		return at < FAULTS ? &host.faults[at] : NULL;
	return value_at(map, place_of(keys_of(map), *(const __u64 *)key, 0));
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	struct table *t = keys_of(map);

	step();
	if (flags & BPF_NOEXIST && place_of(t, *(const __u64 *)key, 0) >= 0)
		return -1;
	void *at = value_at(map, place_of(t, *(const __u64 *)key, 1));
	if (map == &row_of)
		*(__u32 *)at = *(const __u32 *)value;
	else
		*(struct wish *)at = *(const struct wish *)value;
	return 0;
}

static long bpf_map_delete_elem(void *map, const void *key)
{
	struct table *t = keys_of(map);

	step();
	int i = place_of(t, *(const __u64 *)key, 0);
	if (i >= 0)
		t->set[i] = 0;
	return 0;
}

__u32 scx_bpf_nr_cpu_ids(void) { return NCPU; }
__s32 scx_bpf_dsq_nr_queued(__u64 n) { step(); return n <= ROWS ? host.queued[n] : 0; }
void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) {}
__s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags) { return -1; }
void scx_bpf_error_bstr(char *format, unsigned long long *data, __u32 size) { host.error = format; }
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 n, __u64 flags) { return 0; }
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) { return NULL; }
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) {}

/* reset is a host on which nothing has a cap. */
static void reset(void)
{
	memset(&host, 0, sizeof(host));
	memset(ready, 0, sizeof(ready));
	ready_words = high_rows = vnow = 0;
	now_ns = 1000 * MS;
}

/* cap and uncap are what user space does. */
static void cap(__u64 cgid, double cpus)
{
	struct wish w = {.limit = cpus * MILLION};

	bpf_map_update_elem(&wishes, &cgid, &w, BPF_ANY);
	host.control.generation++;
}

static void uncap(__u64 cgid)
{
	bpf_map_delete_elem(&wishes, &cgid);
	host.control.generation++;
}

/* tick is one call of the timer. */
static void tick(void)
{
	struct ticker t = {};

	now_ns += TICK;
	on_tick(NULL, NULL, &t);
}

#endif
