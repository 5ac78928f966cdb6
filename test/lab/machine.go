package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxCPUs bounds a guest's CPUs. 64 boot; 128 take longer than is practical.
const MaxCPUs = 128

// NUMA says which CPUs share a NUMA node.
type NUMA string

// The ways to split a machine into NUMA nodes.
const (
	NUMAPerSocket NUMA = "socket"
	NUMANone      NUMA = "none"
)

// Machine is a guest's hardware.
type Machine struct {
	Sockets       int
	L3sPerSocket  int
	CoresPerL3    int
	ThreadsPerCPU int // hardware threads per core, 1 or 2
	NUMA          NUMA
	MemoryMiB     int
}

// DefaultSMP is the machine that `make lab-test` boots.
const DefaultSMP = "16,sockets=2,cores=4,threads=2"

// DefaultMemoryMiB is a guest's memory without its initramfs.
const DefaultMemoryMiB = 2048

// CPUs returns the number of hardware threads.
func (m Machine) CPUs() int { return m.Sockets * m.L3sPerSocket * m.CoresPerL3 * m.ThreadsPerCPU }

// SMP returns the machine in the form that ParseMachine accepts.
func (m Machine) SMP() string {
	return fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", m.CPUs(), m.Sockets, m.L3sPerSocket*m.CoresPerL3, m.ThreadsPerCPU)
}

// NUMANodes returns how many nodes the guest shows.
func (m Machine) NUMANodes() int {
	if m.NUMA == NUMAPerSocket {
		return m.Sockets
	}
	return 1
}

// ParseMachine reads the value of --smp: a number of CPUs, optionally with their arrangement,
// "16,sockets=2,cores=4,threads=2", where cores is per socket. The defaults are one socket, one thread per core, and
// the remaining cores. l3s is the number of L3 caches per socket.
func ParseMachine(smp string, l3s int, numa NUMA) (Machine, error) {
	fail := func(format string, args ...any) (Machine, error) {
		return Machine{}, fmt.Errorf("--smp %s: %s", smp, fmt.Sprintf(format, args...))
	}
	head, rest, _ := strings.Cut(smp, ",")
	cpus, err := strconv.Atoi(strings.TrimPrefix(head, "cpus="))
	if err != nil || cpus < 1 || cpus > MaxCPUs {
		return fail("want a number of CPUs from 1 to %d first, as in %s", MaxCPUs, DefaultSMP)
	}
	said := map[string]int{}
	for _, part := range strings.Split(rest, ",") {
		if part == "" {
			continue
		}
		name, text, _ := strings.Cut(part, "=")
		value, err := strconv.Atoi(text)
		if !slices.Contains([]string{"sockets", "cores", "threads"}, name) || err != nil || value < 1 || value > MaxCPUs {
			return fail("%q: want sockets=, cores= or threads= with a number from 1", part)
		}
		if _, twice := said[name]; twice {
			return fail("%s is said twice", name)
		}
		said[name] = value
	}
	or := func(name string, otherwise int) int {
		if v, ok := said[name]; ok {
			return v
		}
		return otherwise
	}
	m := Machine{Sockets: or("sockets", 1), ThreadsPerCPU: or("threads", 1), L3sPerSocket: l3s, NUMA: numa, MemoryMiB: DefaultMemoryMiB}
	cores := or("cores", max(1, cpus/(m.Sockets*m.ThreadsPerCPU)))
	if made := m.Sockets * cores * m.ThreadsPerCPU; made != cpus {
		return fail("%d sockets x %d cores x %d threads are %d CPUs, not %d", m.Sockets, cores, m.ThreadsPerCPU, made, cpus)
	}
	if m.ThreadsPerCPU > 2 {
		return fail("x86 cores have 1 or 2 threads")
	}
	if l3s < 1 || cores%l3s != 0 {
		return Machine{}, fmt.Errorf("--l3 %d: want a number that divides the %d cores of a socket", l3s, cores)
	}
	if numa != NUMAPerSocket && numa != NUMANone {
		return Machine{}, fmt.Errorf("--numa %s: want %s or %s", numa, NUMAPerSocket, NUMANone)
	}
	m.CoresPerL3 = cores / l3s
	return m, nil
}

// Named is a machine on offer.
type Named struct {
	Name, For string
	SMP       string
	L3s       int
}

// Topologies returns the machines that are tested and saved as fixtures.
func Topologies() []Named {
	return []Named{
		{"two-sockets-16", "make lab-test: a NUMA node and an L3 per socket, SMT", DefaultSMP, 1},
		{"four-l3-16", "two L3s per socket", DefaultSMP, 2},
		{"one-socket-8", "one NUMA node, no SMT", "8,cores=8", 1},
		{"two-sockets-32", "outside CI", "32,sockets=2,cores=8,threads=2", 2},
		{"two-sockets-64", "outside CI", "64,sockets=2,cores=16,threads=2", 4},
	}
}

// CPU says what a hardware thread belongs to; each number counts from 0 through the whole machine.
type CPU struct{ Socket, L3, Core, NUMANode int }

// CPU returns the place of hardware thread id, from 0 to CPUs()-1.
func (m Machine) CPU(id int) CPU {
	core := id / m.ThreadsPerCPU
	l3 := core / m.CoresPerL3
	c := CPU{Socket: l3 / m.L3sPerSocket, L3: l3, Core: core}
	if m.NUMANodes() > 1 {
		c.NUMANode = c.Socket
	}
	return c
}
