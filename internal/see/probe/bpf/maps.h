/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Maps and switches. Sizes of 1 are set by the loader. */
#ifndef PROBE_MAPS_H
#define PROBE_MAPS_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct container);
} containers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct usage);
} usages SEC(".maps");

/* cgroup id of a watched container -> handle */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u64);
} watched SEC(".maps");

/* cgroup id of any task group seen -> the watched container that it belongs to */
struct place {
	__u64 handle;
	__u64 generation;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct place);
} places SEC(".maps");

/* By number, not per-CPU maps: a timer on one CPU reads the entries of the others. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct held);
} held SEC(".maps");

/*
 * The state of most threads: a table indexed by a hash of the stack address. On a collision the
 * thread is in task storage, where a look-up costs ten times as much.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread);
} thread_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TROUBLES);
	__type(key, __u32);
	__type(value, __u64);
} troubles SEC(".maps");

/* Levels whose periods are recorded: the target's ancestors. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, __u64);
	__type(value, __u8);
} ancestors SEC(".maps");

/* Processes that the recording has named. When it is full, further processes count as the root's. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u32);
} processes SEC(".maps");

/* Connections of the host on which data arrived during a recording, and UDP sockets that the recorded container used. It ends with the socket. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct connection);
} connections SEC(".maps");

/* UDP sockets from which the recorded container read. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct datagrams);
} datagram_sockets SEC(".maps");

/* The ring exists only during a recording. */
struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct ring);
} rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} rows SEC(".maps");

/* Set before loading. */
const volatile __u32 wanted_on;	  /* count wanted and stopped time */
const volatile __u32 thread_slot_shift;  /* of a hash of 64 bits, which leaves an index into thread_slots */
const volatile __u32 create_on;	  /* task storage may be made under run-queue locks */
const volatile __u32 mark_task;	  /* the kernel marks throttled tasks */
const volatile __u32 mark_queue;  /* it marks run queues only */

/* Set while running. */
volatile __u32 generation; /* of places: incremented when the set of watched containers changes */
volatile __u32 epoch;	   /* of recordings */
volatile __u64 recorded;   /* handle of the container that is recorded */
volatile __u64 connected;  /* connections with a number in this recording */
volatile __u32 rows_on;
volatile __u64 rows_lost;

#endif
