// Package numa finds out which NUMA nodes hold a process's memory, and moves it in small steps.
//
// # Problem
//
// A container that moves to the CPUs of another NUMA node leaves its memory behind: each access crosses nodes. The
// kernel can move pages. But a write to cpuset.mems (v2) makes the writer wait until all of them are moved. One
// migrate_pages call per process holds its mmap lock for as long.
//
// # Rule
//
// [Move] looks at each mapping with remote anonymous memory. It moves pages that are not on the wanted nodes by
// move_pages(2), least to most pages a call. While a call takes less than half of maxCall the next one moves
// more, and after a longer one fewer. Between calls it sleeps as long as the call took. [Where] counts the bytes per
// node before and after.
//
// # Example
//
// A process has 1 GiB of anonymous memory on node 0, and its CPUs are now on node 1. [Move] moves 262,144 pages in some
// 205 calls of 1,280. Where then shows node 1.
//
// # Limits
//
// [Move] leaves pages that several processes map (MPOL_MF_MOVE) and files' pages. It also leaves mappings of more than
// maxMapping bytes, which have too many pages to query. If a process maps and unmaps meanwhile, some pages stay;
// callers check with Where and may call again.
//
// Sources: mm/migrate.c (do_pages_move, do_pages_stat), fs/proc/task_mmu.c (show_numa_map), move_pages(2); the sizes of
// the batches after Katalyst's memory plugin.
package numa
