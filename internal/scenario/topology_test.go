package scenario

import (
	"testing"
	"time"
)

func TestTopology(t *testing.T) {
	const good = `version: 1
host:
  cpus: 16
  topology: {threads_per_core: 2, nodes: 2}
  constants: {cold_cache: 5us}
cgroups:
  pod: {mems: 0-1}
  app:
    parent: pod
    mems: "1"
workloads: {w: {kind: burn, cgroup: app}}
`
	s, err := Parse("good.yaml", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	want := Topology{ThreadsPerCore: 2, Caches: 2, Nodes: 2, Sibling: 1.3, Remote: 1.3}
	if s.Host.Topology != want || s.Host.Topology.Equal() || s.Host.ColdCache != 5*time.Microsecond ||
		s.EffectiveMems(&s.Cgroups[1]).String() != "1" {
		t.Errorf("%+v", s.Host)
	}
	if none := new(Topology); !none.Equal() {
		t.Error("the zero value makes CPUs unequal")
	}
	for _, test := range []struct {
		old, new string
		line     int
		want     string
	}{
		{"cpus: 16", "cpus: 15", 4, "host.topology.threads_per_core: 15 CPUs are no whole cores of 2"},
		{"nodes: 2", "nodes: 3", 4, "8 cores do not divide into 3 equal caches"},
		{"nodes: 2", "caches: 4, nodes: 3", 4, "host.topology.nodes: 4 caches do not divide into 3 equal nodes"},
		{"threads_per_core: 2", "threads_per_core: 0", 4, "from 1 to 8"},
		{"nodes: 2", "nodes: 2, sibling: 0.5", 4, "host.topology.sibling: \"0.5\": give a number from 1 to 2"},
		{"nodes: 2", "nodes: 2, remote: .nan", 4, "give a number from 1 to 10"},
		{"nodes: 2", "nodes: 2, remote: 0x1p1", 4, "give a number from 1 to 10"},
		{"nodes: 2", "sockets: 2", 4, "unknown key \"sockets\": choose from caches, nodes, remote, sibling, threads_per_core"},
		{"cold_cache: 5us", "cold_cache: 2s", 5, "give a time from 0 to 1s"},
		{`"1"`, `"2"`, 10, "cgroups.app.mems: 2: the host has memory nodes 0-1"},
		{`"1"`, "x", 10, "give memory nodes as the kernel writes them"},
		{"mems: 0-1", `mems: "0"`, 10, "cgroups.app.mems: 1: none of the parent's memory nodes"},
	} {
		refused(t, good, test.old, test.new, test.line, test.want)
	}
}
