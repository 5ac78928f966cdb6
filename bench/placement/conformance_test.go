package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/placement"
	"github.com/unthrottle/unthrottle/topology"
)

// kubeletCase is one entry of the kubelet's own tables: its data, our scoring.
type kubeletCase struct {
	what, machine string
	free, want    cpuset.CPUSet
	cpus          int
	refused       bool
}

// TestKubeletTables places what the kubelet's own tests place, read from its
// test files in the module cache. Our choice must be valid, and never worse than
// what those tests expect: in sockets, NUMA nodes and L3s touched, then in cores
// split.
func TestKubeletTables(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubernetes-sigs/dra-driver-cpu").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "pkg/cpumanager")
	machines := kubeletMachines(parse(t, filepath.Join(dir, "test_topology.go")))
	cases := kubeletCases(parse(t, filepath.Join(dir, "cpu_assignment_test.go")))
	if len(machines) < 8 || len(cases) < 30 {
		t.Fatalf("%d machines, %d cases: the tables are not as they were", len(machines), len(cases))
	}
	ran := map[string]int{}
	for _, c := range cases {
		m, ok := machines[c.machine]
		if !ok {
			ran["machine not in the tables"]++
			continue
		}
		got, err := placement.Fit().Place(placement.Host{Machine: m, Free: c.free}, placement.Request{CPUs: c.cpus})
		switch {
		case c.cpus == 0:
			ran["nothing asked for"]++
			continue
		case c.refused && c.free.Size() < c.cpus:
			if err == nil {
				t.Errorf("%s: %s chosen, a refusal is due", c.what, got.CPUs)
			}
			ran["refused"]++
			continue
		case err != nil:
			t.Errorf("%s: %v", c.what, err)
			continue
		case c.refused || c.want.Size() != c.cpus:
			ran["refused for an option that is not ours"]++
			continue
		}
		if err := placement.Check(placement.Host{Machine: m, Free: c.free}, placement.Request{CPUs: c.cpus}, got); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if ours, theirs := touched(m, got.CPUs), touched(m, c.want); slices.Compare(ours, theirs) > 0 {
			t.Errorf("%s: %s costs %v, %s only %v", c.what, got.CPUs, ours, c.want, theirs)
		}
		ran["placed"]++
	}
	t.Logf("%v", ran)
	if ran["placed"] < 25 {
		t.Errorf("only %d placed", ran["placed"])
	}
}

// touched is what a set touches: groups at each level, the widest first, then
// split cores.
func touched(m topology.Machine, set cpuset.CPUSet) []int {
	var out []int
	for _, level := range m.Nesting(topology.LevelSocket, topology.LevelNUMANode, topology.LevelL3) {
		out = append(out, len(m.Spans(level, set)))
	}
	split := 0
	for _, core := range m.Spans(topology.LevelCore, set) {
		if !m.Group(topology.LevelCore, core).IsSubsetOf(set) {
			split++
		}
	}
	return append(out, split)
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// kubeletMachines reads variables that hold a CPUTopology.
func kubeletMachines(f *ast.File) map[string]topology.Machine {
	out := map[string]topology.Machine{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		details := field(v.Values[0], "CPUDetails")
		if details == nil {
			return true
		}
		var m topology.Machine
		nodes := map[int][]int{}
		for _, e := range details.(*ast.CompositeLit).Elts {
			pair := e.(*ast.KeyValueExpr)
			id := number(pair.Key)
			at := func(name string) topology.ID { return topology.ID(number(field(pair.Value, name))) }
			m.CPUs = append(m.CPUs, topology.CPU{ID: id, Online: true, Socket: at("SocketID"), Die: topology.Unknown, NUMANode: at("NUMANodeID"),
				L3: at("UncoreCacheID"), Core: at("CoreID"), Cluster: topology.Unknown})
			nodes[int(at("NUMANodeID"))] = append(nodes[int(at("NUMANodeID"))], id)
		}
		slices.SortFunc(m.CPUs, func(a, b topology.CPU) int { return a.ID - b.ID })
		for id := range 64 {
			if cpus := nodes[id]; cpus != nil {
				m.NUMANodes = append(m.NUMANodes, topology.NUMANode{ID: id, CPUs: cpuset.New(cpus...)})
			}
		}
		out[v.Names[0].Name] = m
		return false
	})
	return out
}

// kubeletCases reads composites of seven: what, machine, options, free CPUs,
// number, error, result; and of eight, with a group size after the number.
func kubeletCases(f *ast.File) []kubeletCase {
	var out []kubeletCase
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok || len(lit.Elts) != 7 && len(lit.Elts) != 8 {
			return true
		}
		what, ok1 := lit.Elts[0].(*ast.BasicLit)
		machine, ok2 := lit.Elts[1].(*ast.Ident)
		cpus, ok3 := lit.Elts[4].(*ast.BasicLit)
		failure, ok4 := lit.Elts[len(lit.Elts)-2].(*ast.BasicLit)
		free, ok5 := set(lit.Elts[3])
		want, ok6 := set(lit.Elts[len(lit.Elts)-1])
		if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 {
			out = append(out, kubeletCase{what.Value, machine.Name, free, want, number(cpus), failure.Value != `""`})
		}
		return true
	})
	return out
}

// field returns the value of a key of a composite, behind & too.
func field(e ast.Expr, name string) ast.Expr {
	if u, ok := e.(*ast.UnaryExpr); ok {
		e = u.X
	}
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}

// number of a literal; 0 where there is none, as Go fills it in.
func number(e ast.Expr) int {
	if lit, ok := e.(*ast.BasicLit); ok {
		n, _ := strconv.Atoi(lit.Value)
		return n
	}
	return 0
}

// set reads cpuset.New(1, 2) and mustParseCPUSet(t, "0-3").
func set(e ast.Expr) (cpuset.CPUSet, bool) {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return cpuset.New(), false
	}
	var ids []int
	for _, arg := range call.Args {
		lit, ok := arg.(*ast.BasicLit)
		if !ok {
			continue
		}
		if lit.Kind == token.STRING {
			s, err := topology.ParseList(strings.Trim(lit.Value, `"`))
			return s, err == nil
		}
		ids = append(ids, number(lit))
	}
	return cpuset.New(ids...), true
}
