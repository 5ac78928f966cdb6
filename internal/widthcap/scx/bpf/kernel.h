/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few kernel types and functions that the scheduler uses, with only the fields it uses. The
 * loader finds the true offsets in the running kernel's BTF (CO-RE).
 */
#ifndef SCX_KERNEL_H
#define SCX_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

#define NULL ((void *)0)
#define __ksym __attribute__((section(".ksyms")))

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_TASK_STORAGE = 29 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { CLOCK_MONOTONIC = 1 };
enum { ENOMEM = 12 };

struct bpf_spin_lock {
	__u32 val;
};
struct bpf_timer {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_scx_dsq {
	__u64 __opaque[6];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));

/* include/linux/sched.h */
enum { PF_KTHREAD = 0x00200000 };

/* kernel/sched/ext_internal.h, Linux 6.18 */
#define SCX_DSQ_LOCAL ((1ULL << 63) | 2)
#define SCX_ENQ_WAKEUP 1ULL
#define SCX_ENQ_PREEMPT (1ULL << 32)
#define SCX_KICK_IDLE 1ULL
#define SCX_KICK_PREEMPT 2ULL
enum { SCX_TASK_QUEUED = 1 };
enum { SCX_OPS_ENQ_LAST = 2, SCX_OPS_ENQ_EXITING = 4, SCX_OPS_ENQ_MIGRATION_DISABLED = 16 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct kernfs_node {
	__u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct task_group {
	struct cgroup_subsys_state css;
	struct task_group *parent;
};

struct sched_ext_entity {
	__u32 flags;
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
};

struct task_struct {
	unsigned int flags;
	int nr_cpus_allowed;
	const void *cpus_ptr; /* struct cpumask; named here, the compiler would leave its members out */
	struct task_group *sched_task_group;
	struct sched_ext_entity scx;
};

struct scx_init_task_args {
	bool fork;
};

struct scx_cgroup_init_args {
	__u32 weight;
	__u64 bw_period_us;
	__u64 bw_quota_us;
	__u64 bw_burst_us;
};

struct scx_cpu_release_args {
	struct task_struct *task;
};

enum scx_exit_kind { SCX_EXIT_NONE = 0 };

struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason;
	char *msg;
};

#pragma clang attribute pop

/* The members that we set; the loader finds them by name. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *, __s32, __u64);
	void (*enqueue)(struct task_struct *, __u64);
	void (*dispatch)(__s32, struct task_struct *);
	bool (*yield)(struct task_struct *, struct task_struct *);
	void (*runnable)(struct task_struct *, __u64);
	void (*running)(struct task_struct *);
	void (*stopping)(struct task_struct *, bool);
	void (*quiescent)(struct task_struct *, __u64);
	void (*cpu_release)(__s32, struct scx_cpu_release_args *);
	__s32 (*init_task)(struct task_struct *, struct scx_init_task_args *);
	__s32 (*cgroup_init)(struct cgroup *, struct scx_cgroup_init_args *);
	void (*cgroup_exit)(struct cgroup *);
	void (*cgroup_set_weight)(struct cgroup *, __u32);
	void (*cgroup_set_bandwidth)(struct cgroup *, __u64, __u64, __u64);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

__s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 enq_flags) __ksym;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 vtime, __u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym;
__s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __ksym;
void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
__s32 scx_bpf_pick_idle_cpu(const struct cpumask *cpus_allowed, __u64 flags) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(__s32 cpu) __ksym;
__s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags, bool *is_idle) __ksym;
bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *cpumask) __ksym;
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
__s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
__u32 scx_bpf_nr_cpu_ids(void) __ksym;
__u32 scx_bpf_reenqueue_local(void) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, __u32 data__sz) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq_id, __u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

#endif
