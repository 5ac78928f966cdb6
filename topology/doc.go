// Package topology describes the CPUs of a machine: which hardware threads
// share a core, an L3 cache, a NUMA node, a die, a socket.
package topology
