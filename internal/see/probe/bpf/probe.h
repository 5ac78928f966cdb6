/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The types that kernel side and user side share: map values and records. */
#ifndef PROBE_H
#define PROBE_H

/* Levels of a histogram; the last one holds that many and more. */
#define LEVELS 256

/*
 * A watched container: a slot of an array, reused. Programs that count in it keep its handle. So a
 * count that began for the slot's former owner never ends in the new one's.
 *
 *	handle = serial << 32 | slot + 1; 0 is no container
 *
 * A word is a count and the time since which it holds, so that both change together:
 *
 *	word = time in units of 16 ns (48 bits) << 16 | count (16 bits)
 *
 * A change that a word is owed is not in its count yet: see change.
 */
struct container {
	__u64 handle;
	__u64 id; /* of its cgroup */
	__u64 _pad1[6];
	/* All CPUs write the two words: a cache line each. */
	__u64 width_word;
	__s64 width_owed;
	__u64 width_most; /* since the last row */
	__u64 _pad2[5];
	__u64 wanted_word;
	__s64 wanted_owed;
	__u64 _pad3[6];
	__u64 stopped_word; /* run queues on which a quota holds back its threads */
	__s64 stopped_owed;
	__u64 stopped_late; /* ns by which its changes came late */
	__u64 stopped[2];   /* ns free, ns stopped */
	__u64 stopped_intervals;
	/* Values at the last row. */
	__u64 row_at;
	__u64 row_integral; /* width x ns */
	__u64 row_stopped;
	__u64 late; /* ns by which changes of width and wanted came late, see change */
	__u64 width[LEVELS];
	__u64 wanted[LEVELS];
};

/* The use of one container on one CPU. */
struct usage {
	__u64 ns;
};

/*
 * A CPU caches the container of some cgroups, because a look-up in a hash would be half of the cost
 * of a switch. A wake-up may interrupt another's write: check shows whether an entry is complete.
 */
struct memo {
	__u64 id; /* of a task's cgroup */
	__u64 handle;
	__u64 check;
};
#define MEMOS 8 /* a power of two */

/* The state of a CPU. */
struct cpu {
	__u64 handle;	/* the container that holds it, 0: none */
	__u64 since;	/* when it took it */
	__u64 group;	/* task group of its task, as an address: shows moves */
	__u64 holder;	/* see holder_of; good while epoch is the recording's */
	__u32 epoch;
	__u32 generation;
	__u32 in_timer;	/* an hrtimer's function runs */
	__u32 held;	/* entries of held that are in use, roughly */
	__u32 pid;	/* of its task */
	__u32 unseen;	/* switches that it made without an event to us */
	__u64 lost;	/* events that had no room in the ring */
	__u64 lost_reported;
	__u64 stack;	/* of a thread: see stack_of */
	__u32 inside;	/* programs that count or write events here now: see enter */
	__u32 finished;	/* how often that went back to 0 */
	struct memo memos[MEMOS];
};

/* A run queue (of one cgroup on one CPU) on which a quota holds threads back. */
struct held {
	__u64 handle; /* 0: free; HELD_CLAIMED: it is being written */
	__u64 queue;  /* struct cfs_rq, as an address */
	__u64 leaf;   /* id of its cgroup */
	__u64 group;  /* its struct task_group, as an address */
};
#define HELD_PER_CPU 32
#define HELD_CLAIMED (~0ULL) /* not a container's handle: no such slot exists */

/* The state of a thread, in its thread slot or in task storage. A cache line. */
struct thread {
	__u64 stack;   /* the thread's stack address: the owner of this slot; 0: free */
	__u64 counted; /* handle of the container that counts it as wanting a CPU */
	__u64 leaf;    /* its cgroup in the last event */
	__u64 waker;   /* holder code of the thread that wakes it */
	/*
	 * Its container, valid while the thread is in this task group (an address) and places are of
	 * this generation.
	 */
	__u64 place;
	__u64 group;
	__u32 generation;
	__u32 epoch;	/* the recording that knows it, by this number (see introduce) */
	__u32 tid;
	__u16 named_at; /* in units of 2^20 ns */
	__u16 renamed;	/* its name has changed since the last event */
};

/* What went wrong since the probe was opened; index of troubles. */
enum trouble {
	TROUBLE_UNDERFLOW,  /* a count would have gone below 0 */
	TROUBLE_CONTENTION, /* a word changed too often meanwhile: a change is owed, some ns misplaced */
	TROUBLE_THREADS,    /* no memory for a thread's state */
	TROUBLE_HELD,	    /* more throttled cgroups on a CPU than it has entries for */
	TROUBLE_PLACES,	    /* more cgroups than the cache holds: slower, still right */
	TROUBLE_FULL,	    /* a count would have gone above what a word holds */
	TROUBLES,
};

/* Records of the ring. The first 12 bytes of all are alike. */
enum record_kind {
	RECORD_SWITCH = 1,
	RECORD_WAKEUP,
	RECORD_MIGRATE,
	RECORD_THREAD, /* introduces a thread, renames it, or moves it */
	RECORD_LEAVE,
	RECORD_EXIT,
	RECORD_HOLD,
	RECORD_RELEASE,
	RECORD_PERIOD,
	RECORD_LOST,
	RECORD_HOLDER, /* the new holder of the CPU */
	RECORD_PROCESS,
	RECORD_RECEIVE, /* a: tid, b: socket's number, c: since when the data was there */
	RECORD_SEND,	/* a: tid, b: socket's number */
	RECORD_DATAGRAM_READ,
	RECORD_DATAGRAM_SENT,
};

enum record_flags {
	FLAG_RUNNABLE = 1,
	FLAG_THROTTLED = 2,
	FLAG_NEW = 4,
	FLAG_IN_KERNEL = 8,
	FLAG_MOVED = 16, /* of RECORD_THREAD: it came from elsewhere */
};

/* a and b are holder codes, a and more 64 bits wide where the kind says so. */
struct record {
	__u64 at;
	__u8 kind;
	__u8 flags;
	__u16 cpu;
	__u32 _pad;
	__u64 a;
	__u64 b;
};

/*
 * The kinds with one more number: RECORD_SWITCH and RECORD_WAKEUP when throttled (the throttling
 * cgroup), RECORD_HOLD.
 */
struct record_more {
	struct record r;
	__u64 c;
};

struct record_thread {
	struct record r; /* a: tid, b: tgid */
	__u64 cgroup;
	char comm[16];
};

struct record_period {
	struct record r; /* a: cgroup, b: periods << 32 | throttled */
	__u64 quota;
	__u64 left;
	__u64 burst;
	__u64 stopped_cpus;
};

/* A datagram that was read, or sent: user space finds which answers which. */
struct record_datagram {
	struct record r; /* a: tid, 0: not known; b: the socket */
	__u64 since;	 /* when it arrived, 0: not known; only of those that were read */
	__u64 client;	 /* 0: not known */
	__u64 head;
};

/* Room for any record. */
union any_record {
	struct record_datagram datagram;
	struct record r;
	struct record_more more;
	struct record_thread thread;
	struct record_period period;
};

/*
 * A connection during a recording, in the storage of its struct sock: the side that a client
 * connected to.
 */
struct connection {
	__u64 arrived; /* since when data waits to be read; 0: none does */
	__u64 latest;  /* when data arrived last */
	__u64 sent;    /* the last record of a write since the last record of a read; 0: none */
	__u32 number;  /* in the recording; 0: nothing of it was read yet */
	__u32 epoch;   /* the recording */
	__u32 ours;    /* a client opened it to the side that has this socket */
	__s32 inside;  /* above 0: its data comes from threads of the recorded container */
};

/* Spreads a key over the upper bits of the product: 2^64 divided by the golden ratio. */
#define HASH_FACTOR 0x9e3779b97f4a7c15ULL

/* A datagram that waits at a socket of a server. */
struct datagram {
	__u64 skb;    /* its buffer; 0: it was told of, or is not noted yet */
	__u64 client; /* the client's address and port; 0: not known */
	__u64 head;   /* its first bytes */
	__u64 at;     /* when it arrived */
};

/* A UDP socket of a server. Datagrams are read in the order in which they arrive, of any client and by any thread. */
#define DATAGRAMS_WAIT 128
struct datagrams {
	struct datagram waits[DATAGRAMS_WAIT]; /* those that arrived, by their number */
	__u64 came, read;                      /* how many arrived, and were told of as read */
	__u64 reads;                           /* how many reads there were; never above read if all that arrived are noted */
	__u64 last;                            /* the buffer of the last one that came; 0: none did in this recording */
	__u32 epoch;                           /* the recording */
	__u32 answers;                         /* how many records of answers it may still have, until the next is read */
	__s32 inside;                          /* above 0: they come from threads of the recorded container */
};

/* Of a socket's writes within so many ns only the first has a record: recording.SendEveryNS. */
#define SEND_EVERY 100000

/* The holder of a CPU or the waker of a thread: kind << 32 | number. */
enum holder_kind {
	HOLDER_IDLE,
	HOLDER_KERNEL,
	HOLDER_THREAD,	  /* of the recorded container; number: tid */
	HOLDER_CONTAINER, /* number: slot + 1 */
	HOLDER_PROCESS,	  /* number: tgid */
};

/* A thread as the iterator saw it. */
struct thread_row {
	__u64 at;
	__u64 cgroup;
	__u64 utime;
	__u64 stime;
	__u32 tid;
	__u32 tgid;
	__u32 state; /* 0 sleeping, 1 runnable, 2 running */
	__u32 cpu;
	__s32 nice;
	__u32 held;
	char comm[16];
};

/* One container over one period. */
struct row {
	__u64 handle;
	__u64 at;
	__u64 length;
	__u64 integral; /* width x ns */
	__u64 stopped;
	__u32 most;
	__u32 throttled;
};

#endif
