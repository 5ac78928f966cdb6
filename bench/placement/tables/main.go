// Command tables reads the peers' own test tables, the data only, out of their
// test files, and writes placement/testdata/peers.json for the conformance suite
// of package placement:
//
//	go -C bench/placement run ./tables -kubelet DIR -dra DIR -nri DIR > placement/testdata/peers.json
//
// The folders are those of the modules k8s.io/kubernetes,
// github.com/kubernetes-sigs/dra-driver-cpu and github.com/containers/nri-plugins,
// as "go mod download -json" names them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
)

// Tables is the content of the file.
type Tables struct {
	Sources []string `json:"sources"`
	// Machines by name: rows of CPU, core, socket, NUMA node, L3.
	Machines map[string][][5]int `json:"machines"`
	Cases    []Case              `json:"cases"`
}

// Case is one entry of a table: a request, and what that peer expects of itself.
type Case struct {
	What    string `json:"what"`
	Machine string `json:"machine"`
	Free    string `json:"free"`
	CPUs    int    `json:"cpus"`
	Want    string `json:"want"`
	// Refused: the peer expects an error.
	Refused bool `json:"refused,omitempty"`
}

func main() {
	kubelet := flag.String("kubelet", "", "`folder` of k8s.io/kubernetes")
	dra := flag.String("dra", "", "`folder` of dra-driver-cpu")
	nri := flag.String("nri", "", "`folder` of nri-plugins")
	flag.Parse()
	if err := run(*kubelet, *dra, *nri); err != nil {
		fmt.Fprintln(os.Stderr, "tables:", err)
		os.Exit(1)
	}
}

func run(kubelet, dra, nri string) error {
	out := Tables{Machines: map[string][][5]int{}}
	seen := map[Case]bool{}
	for _, source := range []struct {
		name, holder, module, dir string
		machines                  []string
		cases                     []string
	}{
		{"kubelet", "The Kubernetes Authors", kubelet, "pkg/kubelet/cm/cpumanager",
			[]string{"policy_test.go"}, []string{"cpu_assignment_test.go", "policy_static_test.go"}},
		{"dra-driver-cpu", "The Kubernetes Authors", dra, "pkg/cpumanager", []string{"test_topology.go"}, []string{"cpu_assignment_test.go"}},
		{"nri-plugins", "Intel Corporation", nri, "pkg/cpuallocator", nil, []string{"cpuallocator_test.go"}},
	} {
		dir := filepath.Join(source.module, source.dir)
		r := reader{prefix: source.name + "/", machines: map[string][][5]int{}}
		for _, name := range source.machines {
			f, err := parse(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			r.readMachines(f)
		}
		before := len(out.Cases)
		for _, name := range source.cases {
			f, err := parse(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			for _, c := range r.readCases(f) {
				key := c
				key.What, key.Machine = "", filepath.Base(c.Machine)
				if !seen[key] {
					seen[key] = true
					out.Cases = append(out.Cases, c)
				}
			}
		}
		for _, c := range out.Cases[before:] {
			if m, ok := r.machines[c.Machine]; ok {
				out.Machines[c.Machine] = m
			}
		}
		out.Sources = append(out.Sources, fmt.Sprintf("%s: %s (%s; Apache-2.0, %s)", source.name, source.dir, filepath.Base(source.module), source.holder))
		fmt.Fprintf(os.Stderr, "tables: %s: %d machines, %d new cases\n", source.name, len(r.machines), len(out.Cases)-before)
	}
	enc := json.NewEncoder(os.Stdout)
	return enc.Encode(out)
}

func parse(file string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), file, nil, 0)
}
