package features

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/infile"
)

const usualState = "var/lib/kubelet/cpu_manager_state"

func TestKubelet(t *testing.T) {
	for name, c := range map[string]struct{ state, policy, owns, fails string }{
		"static": {state: `{"policyName":"static","defaultCpuSet":"0,4-7","entries":{"uid":{"web":"1-2","db":"3"}},"checksum":1}`, policy: "static", owns: "1-3"},
		"oldest": {state: `{"policyName":"static","defaultCpuSet":"0-1,4-7","entries":{"0123abc":"2-3"}}`,
			policy: "static", owns: "2-3"},
		"of pods": {state: `{"policyName":"static","defaultCpuSet":"0,2-7","entries":{},"podEntries":{"uid":{"cpuSet":"1"}}}`, policy: "static", owns: "1"},
		"no default": {state: `{"policyName":"static","entries":{"a":{"b":"2"}},"podEntries":{"uid":{"cpuSet":"1"}}}`,
			policy: "static", owns: "1-2"},
		"other fields": {state: `{"policyName":"static","defaultCpuSet":"0-5","entries":{},"podSets":{"uid":["6-7"]}}`,
			policy: "static", owns: "6-7"},
		"all given": {state: `{"policyName":"static","defaultCpuSet":"","entries":{"a":{"b":"0-7"}}}`, policy: "static", owns: "0-7"},
		"none":      {state: `{"policyName":"none","defaultCpuSet":"","entries":{"uid":{"web":"1-2"}}}`},
		"no file":   {},
		"broken":    {state: `{"policyName":"static","defaultCpu`, owns: "0-7", fails: "unexpected format"},
		"empty":     {state: " ", owns: "0-7", fails: "unexpected format"},
		"an array":  {state: `[]`, owns: "0-7", fails: "unexpected format"},
		"a mark":    {state: "\ufeff{}", owns: "0-7", fails: "unexpected format"},
		"no policy": {state: `{}`, owns: "0-7", fails: "no policyName"},
		"strange":   {state: `{"policyName":"static","entries":{"uid":[1]}}`, policy: "static", owns: "0-7", fails: "unknown format"},
		"strange pods": {state: `{"policyName":"static","podEntries":{"uid":{"cpus":"1"}}}`, policy: "static",
			owns: "0-7", fails: "unknown format"},
		"no list":  {state: `{"policyName":"static","entries":{"uid":{"web":"1-x"}}}`, policy: "static", owns: "0-7", fails: "1-x"},
		"long":     {state: `{"policyName":"` + strings.Repeat("x", 1000) + `"}`, owns: "0-7", fails: "a name of 1000 bytes"},
		"too long": {state: `{"policyName":"` + strings.Repeat("x", maxCheckpoint) + `"}`, owns: "0-7", fails: "cannot be read"},
	} {
		root := fstest.MapFS{}
		if c.state != "" {
			root[usualState] = &fstest.MapFile{Data: []byte(c.state)}
		}
		kubelets := ReadKubelets(root)
		if c.owns == "" {
			if len(kubelets) > 0 {
				t.Errorf("%s: %+v", name, kubelets)
			}
			continue
		}
		if len(kubelets) != 1 {
			t.Errorf("%s: %d kubelets", name, len(kubelets))
			continue
		}
		got := kubelets[0]
		if c.fails == "" && got.Err != nil || c.fails != "" && (got.Err == nil || !strings.Contains(got.Err.Error(), c.fails)) {
			t.Errorf("%s: error %v, want %q", name, got.Err, c.fails)
		}
		if owns := got.Owns(cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)).String(); got.Policy != c.policy || owns != c.owns ||
			got.File != "/"+usualState {
			t.Errorf("%s: %q owns %s by %s", name, got.Policy, owns, got.File)
		}
	}
}

// The kubelet that runs says where its folder is, and the usual ones of other distributions are read too.
func TestKubeletElsewhere(t *testing.T) {
	state := &fstest.MapFile{Data: []byte(`{"policyName":"static","defaultCpuSet":"0,2-7","entries":{}}`)}
	process := func(root fstest.MapFS, comm, uid, nspid string, cmdline ...string) {
		root["proc/12/comm"] = &fstest.MapFile{Data: []byte(comm + "\n")}
		root["proc/12/status"] = &fstest.MapFile{Data: []byte("Name:\tkubelet\nUid:\t" + uid + "\t0\t0\t0\nNSpid:\t" + nspid + "\n")}
		root["proc/12/cmdline"] = &fstest.MapFile{Data: []byte(strings.Join(cmdline, "\x00"))}
	}
	for name, c := range map[string]struct {
		build func(root fstest.MapFS)
		file  string // "": none
		fails string
	}{
		"k0s": {build: func(root fstest.MapFS) { root["var/lib/k0s/kubelet/cpu_manager_state"] = state },
			file: "/var/lib/k0s/kubelet/cpu_manager_state"},
		"its flag": {build: func(root fstest.MapFS) {
			process(root, "kubelet", "0", "12", "/usr/bin/kubelet", "--v=2", "--root-dir=/data/kubelet/")
			root["data/kubelet/cpu_manager_state"] = state
		}, file: "/data/kubelet/cpu_manager_state"},
		"its flag, in two words, seen through its root": {build: func(root fstest.MapFS) {
			process(root, "kubelet", "0", "12", "/usr/bin/kubelet", "-root-dir", "/data/kubelet")
			root["proc/12/root/data/kubelet/cpu_manager_state"] = state
		}, file: "/data/kubelet/cpu_manager_state"},
		"it runs and has no file": {build: func(root fstest.MapFS) { process(root, "kubelet", "0", "12", "kubelet") },
			file: "/" + usualState, fails: "no such file that can be seen from here"},
		"of a container": {build: func(root fstest.MapFS) { process(root, "kubelet", "0", "12\t1", "kubelet") }},
		"of a user":      {build: func(root fstest.MapFS) { process(root, "kubelet", "1000", "12", "kubelet") }},
		"another name":   {build: func(root fstest.MapFS) { process(root, "kubelet2", "0", "12", "kubelet") }},
	} {
		root := fstest.MapFS{}
		c.build(root)
		kubelets := ReadKubelets(root)
		if c.file == "" {
			if len(kubelets) > 0 {
				t.Errorf("%s: %+v", name, kubelets)
			}
			continue
		}
		if len(kubelets) != 1 || kubelets[0].File != c.file || (c.fails == "") != (kubelets[0].Err == nil) ||
			c.fails != "" && !strings.Contains(kubelets[0].Err.Error(), c.fails) {
			t.Errorf("%s: %+v", name, kubelets)
		}
	}
}

// A pipe or a loop of links in its place is a state that is not known, and is not waited for.
func TestKubeletThatIsNoFile(t *testing.T) {
	for name, build := range map[string]func(file string) error{
		"a pipe":   func(file string) error { return unix.Mkfifo(file, 0o600) },
		"a loop":   func(file string) error { return os.Symlink(filepath.Base(file), file) },
		"a folder": func(file string) error { return os.Mkdir(file, 0o700) },
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, usualState)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), build(file)); err != nil {
			t.Fatal(err)
		}
		kubelets := ReadKubelets(infile.Root(dir))
		if len(kubelets) != 1 || kubelets[0].Err == nil || len(readManagers(infile.Root(dir))) != 1 {
			t.Errorf("%s: %+v", name, kubelets)
		}
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add([]byte(`{"policyName":"static","defaultCpuSet":"0","entries":{"uid":{"web":"1-2"}}}`))
	f.Add([]byte(`{"policyName":"static","entries":{"0123abc":"2-3"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := parseCheckpoint(data)
		if err == nil && !k.Given.IsEmpty() && k.Policy == "" || len(k.Policy) > maxPolicy {
			t.Errorf("CPUs %s of %q", k.Given, k.Policy)
		}
	})
}
