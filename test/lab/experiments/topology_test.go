package experiments

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab"
	"github.com/unthrottle/unthrottle/test/lab/require"
	"github.com/unthrottle/unthrottle/test/lab/suite"
	"github.com/unthrottle/unthrottle/test/lab/sysfs"
	"github.com/unthrottle/unthrottle/test/lab/wire"
)

// envCapture has TestTopology pass the guest's sysfs tree to the host, under this name.
const envCapture = "UNTHROTTLE_LAB_CAPTURE"

// asked is the machine that was requested for this guest.
func asked(t *testing.T) lab.Machine {
	t.Helper()
	fields := strings.Fields(os.Getenv(suite.EnvMachine))
	if !require.InLab() || len(fields) != 3 {
		t.Skip("needs cpus=16: not a guest of the lab, so no machine is specified; runs in the lab")
	}
	l3s, err := strconv.Atoi(fields[1])
	if err != nil {
		t.Fatal(err)
	}
	m, err := lab.ParseMachine(fields[0], l3s, lab.NUMA(fields[2]))
	if err != nil {
		t.Fatal(err)
	}
	require.CPUs(t, m.CPUs())
	return m
}

// TestTopology compares sysfs with the requested machine, for every CPU: the CPUs with which it shares its core, L3,
// socket and NUMA node.
func TestTopology(t *testing.T) {
	m := asked(t)
	const cpus = "/sys/devices/system/cpu"
	if got, want := text(t, cpus, "online"), list(m, func(int) bool { return true }); got != want {
		t.Fatalf("online are %s, want %s", got, want)
	}
	for id := range m.CPUs() {
		dir := filepath.Join(cpus, fmt.Sprintf("cpu%d", id))
		me := m.CPU(id)
		for _, c := range []struct {
			file string
			same func(lab.CPU) bool
		}{
			{"topology/thread_siblings_list", func(o lab.CPU) bool { return o.Core == me.Core }},
			{"topology/package_cpus_list", func(o lab.CPU) bool { return o.Socket == me.Socket }},
			{"topology/die_cpus_list", func(o lab.CPU) bool { return o.Socket == me.Socket }},
			{"cache/index2/shared_cpu_list", func(o lab.CPU) bool { return o.Core == me.Core }},
			{"cache/index3/shared_cpu_list", func(o lab.CPU) bool { return o.L3 == me.L3 }},
		} {
			want := list(m, func(other int) bool { return c.same(m.CPU(other)) })
			if got := text(t, dir, c.file); got != want {
				t.Errorf("cpu%d %s: %s, want %s", id, c.file, got, want)
			}
		}
	}
	for node := range m.NUMANodes() {
		want := list(m, func(id int) bool { return m.CPU(id).NUMANode == node })
		if got := text(t, fmt.Sprintf("/sys/devices/system/node/node%d", node), "cpulist"); got != want {
			t.Errorf("node%d: CPUs %s, want %s", node, got, want)
		}
	}
	capture(t)
}

// capture passes the tree to `make lab-topologies`, which saves it as a fixture.
func capture(t *testing.T) {
	name := os.Getenv(envCapture)
	if name == "" {
		return
	}
	release := text(t, "/proc/sys/kernel/osrelease")
	tree, err := sysfs.Capture(os.DirFS("/sys"), fmt.Sprintf("Linux %s as the lab's guest (make lab-topologies), --smp, --l3, --numa: %s",
		release, os.Getenv(suite.EnvMachine)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(wire.OutDir, name+".txt"), tree, 0o644); err != nil {
		t.Fatal(err)
	}
}

// list writes the CPUs for which in returns true in the kernel's form: "0-3,8".
func list(m lab.Machine, in func(id int) bool) string {
	var parts []string
	for id := 0; id < m.CPUs(); id++ {
		if !in(id) {
			continue
		}
		first := id
		for id+1 < m.CPUs() && in(id+1) {
			id++
		}
		if first == id {
			parts = append(parts, strconv.Itoa(id))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, id))
		}
	}
	return strings.Join(parts, ",")
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestGuestHasWhatItPromises fails, rather than skips, in a guest that lacks a feature that `lab list` shows for the
// default kernel.
func TestGuestHasWhatItPromises(t *testing.T) {
	if !require.InLab() {
		t.Skip("needs cpus=16: not a guest of the lab; runs in the lab")
	}
	must := os.Getenv(require.EnvMust)
	require.Root(t)
	switch {
	case strings.Contains(must, "root,v2"):
		require.CgroupV2(t)
	case strings.Contains(must, "root,v1"):
		require.CgroupV1(t)
	default:
		t.Fatalf("%s=%q: the lab forgot to say what its guest has", require.EnvMust, must)
	}
	require.BPF(t)
	if strings.Contains(must, "sched_ext") {
		require.SchedExt(t)
	}
	if _, err := os.ReadFile("/proc/pressure/cpu"); err != nil {
		t.Errorf("PSI: %v", err)
	}
}
