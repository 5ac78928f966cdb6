// Package placement chooses which CPUs each container of a node gets, judges
// placements of any origin, and plans the moves that repair them.
//
// # Problem
//
// A container that is spread over two sockets, NUMA nodes or L3 caches pays for
// it at every shared line; one that shares a core with a stranger gets half of
// it. Choosing greedily, domain by domain, crosses although one domain had
// room: of 2 sockets of 10 CPUs with CPUs 8 to 19 free, a request for 4 gets
// 8-11 on two sockets, while socket 1 has 10 free. And what was placed well one
// after the other is a patchwork once some have left.
//
// # Rule
//
// Of all choices of n free CPUs, take the one that is least in these objectives
// ([Order]), the first that differs deciding:
//
//  1. spans: groups touched at each level, the widest level first; which level
//     is wider is found per machine ([topology.Machine.Nesting])
//  2. kind: performance cores, then efficiency cores, then both at once
//  3. split: cores of which it has only a part, which others can use too
//  4. stranded: cores that are partly taken and partly free; an odd thread thus
//     goes to a core that is split already
//  5. shared: cores of which another container has a part
//  6. room: by how much the largest request that fits in one group shrinks
//  7. distance between the NUMA nodes touched
//  8. changes: CPUs that it did not have before, where it had some
//
// and then clusters touched, CPUs left free in the groups touched (the tightest
// fit), and the lowest numbers. The user may put them in another order.
//
// All but room and distance are sums over a tree of groups (socket, NUMA node,
// L3, cluster, sort of core, as the machine nests them), so the best way to take
// j CPUs from a group is found from the best ways for its children, for every j
// up to n: exact, not greedy. Where spans come first only the narrowest groups
// that hold the request are looked at. Room and distance are found by solving
// again with groups spared: exactly where they come first, nearly always
// elsewhere (TestAgainstExactSearch counts the gap).
//
// A crossing is avoidable if, when the container came, a choice with fewer
// groups existed among those best in all objectives before; else it is forced.
//
// # A node over time
//
// A [Node] takes arrivals, departures, resizes in place (growing keeps all CPUs,
// shrinking keeps a part of them), CPUs that go and come back, another order;
// [NewNode] of a [State] takes another reserve, policy or number of CPUs, and
// moves no container that need not move. The shared pool is never empty.
//
//	class      gets
//	exclusive  n CPUs of its own; whole cores, or one thread per core, on request
//	hybrid     floor(cpus) CPUs of its own, and the shared pool for the fraction
//	floating   ceil(cpus) CPUs of the pool, the least busy ones, over no more
//	           sockets and NUMA nodes than needed
//	secondary  the pool, and what others lend
//
// # Repairs
//
// [Node.Repair] looks for a container that crosses and a domain that could hold it,
// has up to three others make way, and keeps the repair that recovers the widest
// crossings for the fewest moved CPUs. Its moves are steps through free CPUs,
// each leaving a valid state; two containers overlap only where no free CPU is
// left to step aside to. As for any newly exclusive CPUs, who shares them
// (floating containers, the pool) leaves them first.
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
// twice. Sets of more than 8 NUMA nodes are not tried one and all for their
// distance. On machines of several thousand CPUs the last tie-breaks do not
// count. A Node makes no garbage where it places, once used for a while;
// refusals, scores and repairs do.
//
// # Sources
//
// The example of the greedy choice: kubelet v1.36.3,
// pkg/kubelet/cm/cpumanager/cpu_assignment.go, takeByTopologyNUMAPacked, run.
// The tree method is the knapsack on trees, known since Johnson and Niemi, On
// Knapsacks, Partitions, and a New Dynamic Programming Technique for Trees (1983).
package placement
