package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

const module = "github.com/unthrottle/unthrottle/"

// row says what the packages of one folder may import of this module.
type row struct {
	folder string
	may    []string
}

var (
	// leaves import nothing of ours, and anyone may import them.
	leaves = []string{"internal/text", "internal/clock", "internal/infile", "internal/stats", "internal/objective", "internal/strictyaml"}
	// public are the packages that other projects import.
	public = []string{"bandwidth", "topology", "placement"}
	// forTests are helpers that only tests import.
	forTests = []string{"test/lab", "test/study", "test/wait", "test/apiserver", "internal/load", "internal/kernel/topologytest",
		"internal/see/recording/recordingtest", "internal/cure/curetest", "bench"}
)

// table reads from left to right along the journey; a row names only what is to its left.
var table = []row{
	{"internal/text", nil},
	{"internal/clock", nil},
	{"internal/stats", nil},
	{"internal/objective", nil},
	{"internal/infile", nil},
	{"internal/strictyaml", nil},
	{"bandwidth", nil},
	{"topology", nil},
	{"placement", []string{"topology"}},
	{"internal/kernel", []string{"bandwidth", "topology"}},
	{"internal/container/names", nil},
	{"internal/container", []string{"internal/kernel"}},
	{"internal/inside", []string{"bandwidth"}},
	{"internal/see", []string{"internal/container", "internal/kernel", "topology"}},
	{"internal/see/recording/recordingtest", []string{"internal/see/recording", "bandwidth"}},
	{"internal/explain", []string{"internal/see", "internal/container", "internal/kernel", "bandwidth", "topology"}},
	{"internal/runtimes", []string{"internal/explain/threadpool", "internal/kernel"}},
	{"internal/scenario", []string{"bandwidth", "topology"}},
	{"internal/load", []string{"internal/scenario", "internal/see/recording", "internal/explain/diagnose",
		"internal/kernel", "topology", "libs/go/budget"}},
	{"internal/load/provoke/stage", []string{"internal/load", "internal/container", "internal/explain/diagnose", "internal/kernel"}},
	{"libs/go", nil}, // a module of its own, which may import nothing of this one
	{"internal/sim/simulate", []string{"internal/scenario", "bandwidth", "topology", "libs/go/pace"}},
	{"internal/sim/forecast", []string{"internal/sim/simulate", "internal/scenario", "internal/explain",
		"internal/see/recording", "internal/see/schedule", "bandwidth", "topology"}},
	{"internal/sim", []string{"internal/load", "internal/scenario", "internal/see", "internal/kernel", "bandwidth", "topology"}},
	{"internal/widthcap", []string{"internal/kernel"}},
	{"internal/podresize", nil},
	{"internal/txn", []string{"internal/widthcap", "internal/podresize", "internal/kernel", "topology"}},
	{"internal/cure", []string{"internal/txn", "internal/widthcap", "internal/podresize", "internal/sim",
		"internal/scenario",
		"internal/explain", "internal/see", "internal/container", "internal/kernel", "placement", "topology", "bandwidth"}},
	{"internal/cure/nri", []string{"internal/txn/change", "internal/container/names", "internal/kernel"}},
	{"internal/placing", []string{"internal/cure/remedy", "internal/cure/hoststate", "internal/txn", "internal/kernel",
		"placement", "topology"}},
	{"internal/ui/report/shared/listing", []string{"internal/see", "internal/container", "internal/kernel", "topology"}},
	{"internal/agent", []string{"internal/ui/report/shared/listing", "internal/demand", "internal/placing", "internal/cure", "internal/txn",
		"internal/podresize", "internal/explain/diagnose", "internal/explain/prober", "internal/see", "internal/container",
		"internal/kernel", "placement"}},
	{"internal/demand", []string{"internal/demand/periodmodel", "internal/see", "internal/container", "internal/kernel"}},
	{"internal/demand/leastlimit", nil},
	{"internal/demand/periodmodel", []string{"internal/sim/simulate/coarse"}},
	{"internal/demand/packing", nil},
	{"internal/demand/phases", []string{"internal/demand/packing"}},
	{"internal/demand/nodefit", []string{"internal/demand/packing"}},
	{"internal/demand/recorded", nil},
	{"internal/demand/collect", []string{"internal/demand", "internal/txn", "internal/explain/diagnose", "internal/see",
		"internal/container", "internal/kernel", "topology"}},
	{"internal/bugreport", nil},
	{"internal/experiment", []string{"internal/sim", "internal/scenario", "internal/load", "internal/kernel",
		"bandwidth", "topology", "placement"}},
	{"internal/ui", []string{"internal/experiment", "internal/placing", "internal/cure", "internal/txn",
		"internal/widthcap", "internal/sim", "internal/scenario", "internal/explain", "internal/see", "internal/inside",
		"internal/runtimes", "internal/container", "internal/kernel", "bandwidth", "topology", "placement"}},
	{"cmd/unthrottle", []string{"internal", "bandwidth", "topology", "placement"}},
	{"packaging/mixin", nil},
	{"bench", []string{"internal", "bandwidth", "topology", "placement"}},
	{"bench/rivals/rules", []string{"bandwidth"}},
	{"test/lab", []string{"internal/text", "internal/clock", "internal/kernel/procfs"}},
	{"test/study", nil},
	{"test/wait", nil},
	{"test/apiserver", []string{"test/wait"}},
	{"test/imports", nil},
	{"test/docs", nil},
	{"test/install", nil},
	{"test/smoke", nil},
	{"test/e2e", []string{"packaging/mixin", "internal/ui/report/shared/progress"}},
}

// unreached says what a package must not reach, over any number of imports.
var unreached = []struct {
	why   string
	from  []string
	never []string
}{
	{"the shipped binary has no tools in it", []string{"cmd/unthrottle"}, []string{module + "bench", module + "test",
		module + "internal/load/provoke/stage", module + "internal/sim/agreement"}},
	{"pure packages load no BPF, start no process and make no system call of their own", []string{
		"bandwidth", "topology", "placement", "internal/text", "internal/stats", "internal/container/names",
		"internal/objective", "internal/strictyaml",
		"internal/inside", "internal/runtimes", "internal/explain/diagnose", "internal/explain/requests",
		"internal/explain/prober", "internal/explain/roles", "internal/explain/sampled", "internal/explain/threadpool",
		"internal/scenario", "internal/sim/simulate", "internal/sim/forecast", "internal/demand/leastlimit",
		"internal/demand/periodmodel", "internal/demand/packing", "internal/demand/phases", "internal/demand/nodefit",
		"internal/demand/recorded",
		"bench/rivals/rules",
	}, []string{"github.com/cilium/ebpf", "golang.org/x/sys", "os/exec", "net", "os/signal"}},
	{"what decides on remedies neither reads the host nor writes to it", []string{
		"internal/txn", "internal/txn/change", "internal/cure/hoststate", "internal/cure/remedy",
		"internal/cure/verdict", "internal/cure/trial", "internal/cure/canary", "internal/cure/policy", "internal/widthcap",
		"internal/podresize",
	}, []string{
		module + "internal/txn/apply", module + "internal/txn/journal", module + "internal/cure/hoststate/gather",
		module + "internal/kernel/irq/irqhost", module + "internal/kernel/schedpolicy/schedhost",
		"github.com/cilium/ebpf", "github.com/godbus/dbus", "github.com/coreos/go-systemd", "os/exec", "os/signal",
	}},
}

// rowOf is the row with the longest folder that holds the package; nil: there is none.
func rowOf(of string) *row {
	var found *row
	for i := range table {
		if within(of, table[i].folder) && (found == nil || len(table[i].folder) > len(found.folder)) {
			found = &table[i]
		}
	}
	return found
}

// within tells whether path is the folder or lies below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }

func anyWithin(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
}

// allows tells whether a row lets its packages import that one of ours.
func (r *row) allows(imported string) bool {
	return within(imported, r.folder) || anyWithin(imported, r.may) || anyWithin(imported, leaves)
}

type listed struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// list asks the go command for the packages of this module, and of bench, which imports its internal packages.
func list(t *testing.T) (all []listed) {
	t.Helper()
	require.Inputs(t, "../..", require.Sources...)
	require.Inputs(t, "../..", "bench", "test")
	for folder, pattern := range map[string]string{"../..": module + "...", "../../bench": "./..."} {
		goList := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,Deps", pattern)
		goList.Dir = folder
		var stderr bytes.Buffer
		goList.Stderr = &stderr
		out, err := goList.Output()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, stderr.String())
		}
		before := len(all)
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p listed
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
		if n := len(all) - before; n < 10 {
			t.Fatalf("go list names %d packages of %s only: the test would find nothing", n, pattern)
		}
	}
	return all
}

func TestDirection(t *testing.T) {
	used := map[string]bool{}
	for _, p := range list(t) {
		from := strings.TrimPrefix(p.ImportPath, module)
		r := rowOf(from)
		if r == nil {
			t.Errorf("%s: no row of the table has this folder; add one, or move the package", from)
			continue
		}
		used[r.folder] = true
		for _, path := range p.Imports {
			if to, ours := strings.CutPrefix(path, module); ours && !r.allows(to) &&
				!(anyWithin(from, forTests) && anyWithin(to, forTests)) {
				t.Errorf("%s imports %s: the row of %s allows %s and the leaves only", from, to, r.folder,
					strings.Join(append([]string{r.folder}, r.may...), ", "))
			}
		}
	}
	for _, r := range table {
		if !used[r.folder] {
			t.Errorf("row %s: there is no such package; take the row out", r.folder)
		}
	}
}

func TestUnreached(t *testing.T) {
	all := map[string]listed{}
	for _, p := range list(t) {
		all[strings.TrimPrefix(p.ImportPath, module)] = p
	}
	for _, rule := range unreached {
		for _, from := range rule.from {
			p, ok := all[from]
			if !ok {
				t.Errorf("%s: there is no such package", from)
				continue
			}
			for _, never := range rule.never {
				if i := slices.IndexFunc(p.Deps, func(dep string) bool { return within(dep, never) }); i >= 0 {
					t.Errorf("%s reaches %s: %s", from, p.Deps[i], rule.why)
				}
			}
		}
	}
}

// The public packages stand alone: other projects import them without those below internal.
func TestPublic(t *testing.T) {
	for _, p := range list(t) {
		if from := strings.TrimPrefix(p.ImportPath, module); slices.Contains(public, from) {
			for _, dep := range p.Deps {
				if to, ours := strings.CutPrefix(dep, module); ours && !slices.Contains(public, to) && !anyWithin(to, leaves) {
					t.Errorf("%s reaches %s, which other projects cannot import", from, to)
				}
			}
		}
	}
}

func TestRows(t *testing.T) {
	for of, want := range map[string]string{
		"internal/scenario/balance": "internal/scenario", "internal/sim/realrun": "internal/sim",
		"bench/agent": "bench", "benchmark": "", "internal/text": "internal/text",
	} {
		got := ""
		if r := rowOf(of); r != nil {
			got = r.folder
		}
		if got != want {
			t.Errorf("%s belongs to row %q, want %q", of, got, want)
		}
	}
	r := &row{"internal/kernel", []string{"topology"}}
	for to, want := range map[string]bool{"topology": true, "topologytest": false, "internal/kernel/irq": true,
		"internal/text": true, "internal/see/probe": false} {
		if r.allows(to) != want {
			t.Errorf("internal/kernel imports %s: allowed is not %v", to, want)
		}
	}
}
