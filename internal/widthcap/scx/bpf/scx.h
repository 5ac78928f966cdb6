/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Maps, and the values in them. Sizes of 1 are set by the loader. */
#ifndef SCX_H
#define SCX_H

enum {
	DEPTH = 4,	/* capped cgroups above one another that count */
	LEVELS = 16,	/* cgroups above one another that are looked at */
	CPUS = 1024,	/* as MaxCPUs of api.go */
	WORDS = 64,	/* of 64 rows: MaxCgroups of api.go */
	PROBES = 8,	/* rows that one dispatch tries */
	HEADS = 4,	/* waiting threads of a row for which a tick looks for an idle CPU */
	UNLIMITED = 1 << 30,
	DRAINS = 1,	/* row.drain: threads run on by it */
	UNLISTED = 2,	/* and row_of has another row for its cgroup, or none */
};

#define MS 1000000ULL
#define MILLION 1000000ULL
#define SLICE (3 * MS)
#define LAG (64 * SLICE)     /* virtual time that a row may catch up */
#define TICK (1 * MS)	     /* of the timer while a cgroup has a cap */
#define IDLE_TICK (20 * MS)  /* and while none has */
#define TURN (8 * MS)	     /* of a fraction, at the longest half of it */
#define DRAIN (100 * MS)     /* of each of the two steps in which a row without a cap becomes free */
#define SINCE 20	     /* wish.since is the time in ns, shifted right by so many bits */
#define PREEMPT_GAP (MS / 5) /* between two threads of a row that are stopped for one that woke */
#define SHARED ((1ULL << 62) - 1) /* the queue of threads without a cap; row n has queue n + 1 */

/* What user space wants, or a cgroup's own cpu.max. */
struct wish {
	__u64 limit;  /* millionths of a CPU */
	__u64 credit; /* ns */
	__u32 widest; /* 0: all CPUs */
	__u32 since;  /* when it came, see saved; 0: not known */
};

/* A capped cgroup. The lock guards all but what is said to be without it. */
struct row {
	struct bpf_spin_lock lock;
	__u32 parent; /* row + 1 of the nearest capped cgroup above; without the lock */
	__u64 cgid;   /* 0: free */
	struct wish wish;
	__s32 used;    /* slots taken: threads that run, or are about to on the CPU that took them here */
	__s32 running; /* threads that run */
	__s32 allow;   /* slots that there are now */
	__u32 up;      /* a fraction's turn at the larger number */
	__u32 wide;    /* uses its credit */
	__s32 most;    /* largest running */
	__s32 waiting; /* threads in its queue at the last tick */
	__u32 drain;   /* it has no cap any more; 0: it has one */
	__s64 level;   /* credit, ns of CPU time; negative: owed */
	__u64 at;      /* level, at_cap and waited hold for this time */
	__u64 at_cap;
	__u64 waited;
	__u64 joined;
	__u64 cut;	    /* without the lock */
	__u64 vnow;	    /* virtual time in its queue, see pass; without the lock */
	__u64 vtime;	    /* the row's own among all threads; without the lock */
	__u64 preempted_at; /* without the lock */
	__u64 drained_at;
};

/* Rows + 1 from a thread's nearest capped cgroup upwards; 0 ends the list. */
struct chain {
	__u32 row[DEPTH];
};

struct cpu {
	struct chain pending; /* slots taken for a thread that was moved here and has not begun */
	struct chain held;    /* slots of the thread that runs here */
	__u64 began;
	__u64 vtime; /* of the thread that runs here, when it began */
	__u32 weight;
	__u32 last; /* nearest row + 1 of the thread that began last */
	__u64 asked; /* when the thread that runs here was stopped for another one; without a lock */
	__u64 pad[8];
};

struct thread {
	__u64 group; /* address of its task group when row was looked up */
	__u32 generation;
	__u32 row; /* + 1 */
	__u32 claimed; /* select_cpu found an idle CPU, which wakes up for it */
	__u32 known;
	__u64 counted; /* cgroup in whose sum of weights it is; 0: none */
	__u32 weight;  /* by which it is there */
	__u32 woke;    /* it has not stopped since it woke up */
};

struct control {
	__u64 beat; /* CLOCK_MONOTONIC of the last tick, before the first one of the start */
	__u32 generation; /* of thread.row: incremented when the set of caps changes */
	__u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct row);
} rows SEC(".maps");

/* cgroup id -> row + 1 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} row_of SEC(".maps");

/* cgroup id -> what user space wants */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct wish);
} wishes SEC(".maps");

/* cgroup id -> its cpu.max, which the fair class enforced before */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, struct wish);
} limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct control);
} controls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct ticker {
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct ticker);
} tickers SEC(".maps");

/* Why the kernel threw the scheduler out. */
struct farewell {
	__s32 kind;
	__u32 unused;
	__s64 code;
	char reason[64];
	char message[192];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct farewell);
} farewells SEC(".maps");

/* What must not happen, as in faultNames of caps.go: each is a defect of ours, or a bound below that was passed. */
enum {
	NO_THREAD,	/* a thread without its storage ran without a cap */
	NO_CPU,		/* CPU numbers from CPUS on: no slot was counted there */
	NO_ROW,		/* a slot of a row that is not there */
	UNBALANCED,	/* a slot given back, or a thread stopped, more often than taken or begun */
	NO_GROUP,	/* a thread of a cgroup without weight: it shares by its nice value alone */
	LOST_LIMIT,	/* a cpu.max for which there was no room, and which does not bind */
	TOO_DEEP,	/* looked at a thread below more than DEPTH capped cgroups or LEVELS cgroups: those on top do not bind */
	FAULTS
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FAULTS);
	__type(key, __u32);
	__type(value, __u64);
} faults SEC(".maps");

static __always_inline void fault(__u32 which)
{
	__u64 *n = bpf_map_lookup_elem(&faults, &which);

	if (n)
		__sync_fetch_and_add(n, 1);
}

const volatile __u32 max_rows; /* set before loading: entries of rows */

__u64 ready[WORDS];  /* rows that may have threads in their queue */
__u64 ready_words;   /* words of ready that are not 0 */
__u64 high_rows;     /* rows below this number were used */
__u64 vnow;	     /* virtual time among all threads, see pass */

static __always_inline struct row *row_at(__u32 n)
{
	__u32 at = n - 1;
	return n ? bpf_map_lookup_elem(&rows, &at) : NULL;
}

static __always_inline struct cpu *cpu_at(__s32 n)
{
	__u32 at = n;
	return bpf_map_lookup_elem(&cpus, &at);
}

static __always_inline struct control *control(void)
{
	__u32 zero = 0;
	return bpf_map_lookup_elem(&controls, &zero);
}

static __always_inline bool before(__u64 a, __u64 b) { return (__s64)(a - b) < 0; }

#endif
