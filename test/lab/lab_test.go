package lab

import (
	"slices"
	"strings"
	"testing"
)

func TestParseMachine(t *testing.T) {
	for _, c := range []struct {
		smp  string
		l3s  int
		want Machine
	}{
		{"16,sockets=2,cores=4,threads=2", 1, Machine{2, 1, 4, 2, NUMAPerSocket, DefaultMemoryMiB}},
		{"cpus=16,threads=2,sockets=2,cores=4", 2, Machine{2, 2, 2, 2, NUMAPerSocket, DefaultMemoryMiB}},
		{"8", 1, Machine{1, 1, 8, 1, NUMAPerSocket, DefaultMemoryMiB}},
		{"8,threads=2", 1, Machine{1, 1, 4, 2, NUMAPerSocket, DefaultMemoryMiB}},
		{"1", 1, Machine{1, 1, 1, 1, NUMAPerSocket, DefaultMemoryMiB}},
	} {
		m, err := ParseMachine(c.smp, c.l3s, NUMAPerSocket)
		if err != nil || m != c.want {
			t.Errorf("%s: got %+v %v, want %+v", c.smp, m, err, c.want)
			continue
		}
		if again, err := ParseMachine(m.SMP(), c.l3s, m.NUMA); err != nil || again != m {
			t.Errorf("%s: SMP() = %s, which is %+v %v", c.smp, m.SMP(), again, err)
		}
	}
	for _, c := range []struct {
		smp  string
		l3s  int
		numa NUMA
		want string
	}{
		{"", 1, NUMANone, "a number of CPUs"}, {"0", 1, NUMANone, "a number of CPUs"}, {"129", 1, NUMANone, "a number of CPUs"},
		{"16,sockets=2,cores=4,threads=1", 1, NUMANone, "are 8 CPUs, not 16"},
		{"16,dies=2", 1, NUMANone, "want sockets="}, {"16,cores=x", 1, NUMANone, "want sockets="},
		{"16,cores=8,cores=8", 1, NUMANone, "twice"},
		{"16,threads=4", 1, NUMANone, "1 or 2 threads"}, {"8", 3, NUMANone, "--l3 3"}, {"8", 0, NUMANone, "--l3 0"},
		{"8", 1, "die", "--numa die"},
	} {
		if m, err := ParseMachine(c.smp, c.l3s, c.numa); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %+v %v, want an error with %q", c.smp, m, err, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	files := Files{Vmlinux: "/k", Initramfs: "/i", DataDirs: []string{"/d"}, Frames: "/proc/self/fd/4"}
	for _, c := range []struct {
		smp        string
		l3s        int
		numa       NUMA
		want, lack []string
	}{
		{DefaultSMP, 1, NUMAPerSocket,
			[]string{"-L /d", "-M q35 ", "-smp 16,sockets=2,cores=4,threads=2", "cpu,node-id=1,socket-id=1", "dist,src=0,dst=1,val=21",
				"memory-backend-ram,id=m1,size=1024M", "-kernel /k -initrd /i", "path=/proc/self/fd/4",
				"-accel tcg,thread=multi", "cpuhp.parallel=0"},
			[]string{"smp-cache", "modules"}},
		{DefaultSMP, 2, NUMAPerSocket,
			[]string{"-M q35,smp-cache.0.cache=l3,smp-cache.0.topology=module",
				"-smp 16,sockets=2,dies=1,modules=2,cores=2,threads=2", "level=0x14"}, nil},
		{DefaultSMP, 1, NUMANone, []string{"-m 2048M"}, []string{"-numa"}},
		{"8", 1, NUMAPerSocket, []string{"-smp 8,sockets=1,cores=8,threads=1"}, []string{"-numa"}},
	} {
		m, err := ParseMachine(c.smp, c.l3s, c.numa)
		if err != nil {
			t.Fatal(err)
		}
		line := strings.Join(Arguments(m, files, "stdio"), " ")
		for _, w := range c.want {
			if !strings.Contains(line, w) {
				t.Errorf("%s: no %q in %s", c.smp, w, line)
			}
		}
		for _, w := range c.lack {
			if strings.Contains(line, w) {
				t.Errorf("%s: %q in %s", c.smp, w, line)
			}
		}
	}
	files.Disks, files.Parameters, files.Node = []string{"/root.ext4", "/files.ext4"}, []string{"lockdown=integrity"}, true
	machine, err := ParseMachine("4", 1, NUMAPerSocket)
	if err != nil {
		t.Fatal(err)
	}
	node := strings.Join(Arguments(machine, files, "stdio"), " ")
	for _, w := range []string{"snapshot=on,file=/root.ext4", "readonly=on,file=/files.ext4", "apparmor=1", "lockdown=integrity"} {
		if !strings.Contains(node, w) {
			t.Errorf("a node: no %q in %s", w, node)
		}
	}
	if strings.Contains(node, "-no-reboot") || strings.Contains(node, "apparmor=0") {
		t.Errorf("a node may reboot and has AppArmor: %s", node)
	}
	files.Node = false
	packages := strings.Join(Arguments(machine, files, "stdio"), " ")
	for _, w := range []string{"snapshot=on,file=/root.ext4", "-no-reboot"} {
		if !strings.Contains(packages, w) || strings.Contains(packages, "systemd") {
			t.Errorf("a disk without its own init: %s", packages)
		}
	}
	odd := Machine{Sockets: 3, L3sPerSocket: 1, CoresPerL3: 1, ThreadsPerCPU: 1, NUMA: NUMAPerSocket, MemoryMiB: 1000}
	if sum := odd.nodeMiB(0) + odd.nodeMiB(1) + odd.nodeMiB(2); sum != 1000 {
		t.Errorf("the nodes' memory adds up to %d MiB, want 1000", sum)
	}
}

func TestTopologiesAreMachines(t *testing.T) {
	var names []string
	for _, n := range Topologies() {
		if _, err := ParseMachine(n.SMP, n.L3s, NUMAPerSocket); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
		if slices.Contains(names, n.Name) {
			t.Errorf("%s is there twice", n.Name)
		}
		names = append(names, n.Name)
	}
}

func TestCPU(t *testing.T) {
	m, err := ParseMachine(DefaultSMP, 2, NUMAPerSocket)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int]CPU{0: {0, 0, 0, 0}, 1: {0, 0, 0, 0}, 2: {0, 0, 1, 0}, 4: {0, 1, 2, 0},
		7: {0, 1, 3, 0}, 8: {1, 2, 4, 1}, 15: {1, 3, 7, 1}} {
		if got := m.CPU(id); got != want {
			t.Errorf("CPU %d: got %+v, want %+v", id, got, want)
		}
	}
}
