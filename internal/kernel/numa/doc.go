// Package numa finds out on which NUMA nodes a process's memory is, and moves
// it, a little at a time.
//
// # Problem
//
// A container that moves to the CPUs of another NUMA node leaves its memory
// behind: each access goes across. The kernel can move pages, but a write to
// cpuset.mems (v2) makes the writer wait until all of them are moved, and one
// migrate_pages call per process holds its mmap lock for as long.
//
// # Rule
//
// [Move] asks where the pages of each mapping with remote anonymous memory are,
// and moves those that are not on the wanted nodes by move_pages(2), [Least] to
// [Most] pages a call: more while a call takes less than half of [MaxCall], fewer
// when it took longer. Between calls it rests as long as the call took. [Where]
// counts what is where before and after.
//
// # Example
//
// 1 GiB of anonymous memory on node 0, the CPUs now on node 1: 262,144 pages in
// some 205 calls of 1,280; Where then shows node 1.
//
// # Limits
//
// Pages that several processes map are left (MPOL_MF_MOVE), as are files' pages
// and mappings of more than [MaxMapping] bytes, whose pages are too many to be
// asked for. A process that maps and unmaps meanwhile keeps what was missed;
// callers look with Where and may call again.
//
// Sources: mm/migrate.c (do_pages_move, do_pages_stat), fs/proc/task_mmu.c
// (show_numa_map), move_pages(2); the sizes of the batches after Katalyst's
// memory plugin.
package numa
