// Package placement chooses which CPUs a container gets for its own.
//
// # Problem
//
// A container that is spread over two sockets, NUMA nodes or L3 caches pays for
// it at every shared line; one that shares a core with a stranger gets half of
// it. Choosing greedily, domain by domain, crosses although one domain had
// room: of 2 sockets of 10 CPUs with CPUs 8 to 19 free, a request for 4 gets
// 8-11 on two sockets, while socket 1 has 10 free.
//
// # Rule
//
// Of all choices of n free CPUs, take the one that is least in these costs, the
// first that differs deciding:
//
//  1. kinds: one kind of cores, if one kind has n CPUs free; performance first
//     unless the request prefers efficiency
//  2. groups touched at each level, the widest level first; which level is wider
//     is found per machine ([topology.Machine.Nesting])
//  3. cores shared: touched cores of which an online thread is not chosen
//  4. stranded cores: those of which a free thread is left over; an odd thread
//     thus goes to a core that is split already
//  5. clusters touched
//  6. CPUs left free in the groups touched, the widest level first: the tightest
//     fit, which keeps the large holes for large requests
//  7. the lowest CPU numbers
//
// The choice is exact, not greedy. Costs 2 to 6 are sums over a tree of groups
// (socket, NUMA node, L3, cluster, core, as the machine nests them), so the best
// way to take j CPUs from a group is found from the best ways for its children,
// for every j up to n. That takes about (free CPUs x n) additions.
//
// # Examples
//
// One socket with 2 L3s of 4 cores of 2 threads; the threads of core c are c and
// c+8; L3 0 has cores 0 to 3:
//
//	free                 n  gets      why
//	all 16               4  0-1,8-9   2 whole cores in L3 0
//	0-1,8-9 and 4-7,     4  0-1,8-9   both L3s hold it, L3 0 more tightly
//	  12-15
//	0-1,8-9 and 4-7,     6  4-6,12-14 only L3 1 holds it
//	  12-15
//	1-3,8,9-11           3  1,8-9     core 0 is split already (0 is taken): the
//	                                  odd thread goes there
//	0-1,8 and 4-6,12-14  8  all but 1 no L3 holds 8: two are touched; of core 1
//	                                  only one thread is free
//
// # Limits
//
// Where levels cross instead of nesting (only virtual machines are known to),
// the narrower group is cut along the wider one and its spans may be counted
// twice. Distances between NUMA nodes do not count yet, nor do moves of what is
// already placed. Order of arrival decides: this is one request at a time.
//
// # Sources
//
// The example of the greedy choice: kubelet v1.36.3,
// pkg/kubelet/cm/cpumanager/cpu_assignment.go, takeByTopologyNUMAPacked, run.
// The tree method is the knapsack on trees, known since Johnson and Niemi, On
// Knapsacks, Partitions, and a New Dynamic Programming Technique for Trees (1983).
package placement
