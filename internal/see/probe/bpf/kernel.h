/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The few kernel types that the probe reads, with only the fields it reads. The loader finds the
 * true offsets in the running kernel's BTF (CO-RE). So order and size here do not matter, but names
 * and kinds do.
 *
 * A name after ___ is a variant of the same kernel type; the loader ignores it.
 */
#ifndef PROBE_KERNEL_H
#define PROBE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

enum { false = 0, true = 1 };

#define NULL ((void *)0)

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1, BPF_F_MMAPABLE = 1024 };
enum { BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
enum { BPF_RB_AVAIL_DATA = 0 };

/*
 * include/linux/sched.h. The tracepoints show these values, so they are part of the interface to
 * user space.
 */
enum { TASK_RUNNING = 0, TASK_DEAD = 0x80 };
enum { PF_KTHREAD = 0x00200000 };
enum { SCHED_FIFO = 1, SCHED_RR = 2, SCHED_DEADLINE = 6 };
enum { DEFAULT_PRIO = 120 };

/* include/linux/socket.h, include/uapi/linux/in.h, include/net/tcp_states.h */
enum { AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10 };
enum { SOCK_STREAM = 1, SOCK_DGRAM = 2 };
enum { IPPROTO_TCP = 6, IPPROTO_UDP = 17 };
enum { SOCK_BINDPORT_LOCK = 8 };
enum { TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum { MSG_PEEK = 2 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
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

struct hrtimer {
	void *function;
};

struct cfs_bandwidth {
	__u64 quota;
	__u64 runtime;
	__u64 burst;
	struct hrtimer period_timer;
	struct hrtimer slack_timer;
	struct list_head throttled_cfs_rq;
	int nr_periods;
	int nr_throttled;
};

struct cfs_rq;

struct task_group {
	struct cgroup_subsys_state css;
	struct cfs_rq **cfs_rq;
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};

struct rq {
	int cpu;
};

struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;
	__s64 runtime_remaining;
	int throttled;
	int throttle_count;
	struct list_head throttled_list;
};

struct cfs_rq___since_6_14 {
	unsigned int h_nr_runnable;
};
struct cfs_rq___since_6_12 {
	unsigned int h_nr_delayed;
};
struct cfs_rq___before_6_14 {
	unsigned int h_nr_running;
};

struct sched_entity {
	unsigned char sched_delayed; /* Linux 6.12 and later */
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq;
};

struct thread_info {
	__u32 cpu;
};

struct bpf_local_storage;

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	unsigned int flags;
	unsigned char on_cpu; /* as on_rq */
	unsigned char on_rq; /* an int before 7.2; its values need no more */
	int static_prio;
	struct sched_entity se;
	struct task_group *sched_task_group;
	bool throttled; /* Linux 6.18 and later */
	unsigned int policy;
	int pid;
	int tgid;
	struct task_struct *group_leader;
	__u64 utime;
	__u64 stime;
	char comm[16];
	struct bpf_local_storage *bpf_storage;
};

struct in6_addr {
	__u8 in6_u[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

/* include/linux/skbuff.h: a queue begins as its buffers do. */
struct sk_buff {
	struct sk_buff *next;
	struct sk_buff *prev;
	struct sock *sk;
	unsigned char *head;
	__u16 transport_header;
	__u16 network_header;
};

struct sk_buff_head {
	struct sk_buff *next;
	struct sk_buff *prev;
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct {
		int owned;
	} sk_lock;
	unsigned char sk_userlocks : 4;
	__u16 sk_type;
	__u16 sk_protocol;
};

struct inet_bind_bucket {
	signed char fastreuse;
};

struct udp_sock {
	struct sk_buff_head reader_queue;
};

struct inet_connection_sock {
	struct inet_bind_bucket *icsk_bind_hash;
};

struct unix_address;

struct unix_sock {
	struct unix_address *addr;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

#endif
