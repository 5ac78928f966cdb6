package features

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	"github.com/unthrottle/unthrottle/topology"
)

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func ptr[T any](v T) *T { return &v }

func TestReadKernel(t *testing.T) {
	for _, tc := range []struct {
		name string
		root fstest.MapFS
		want Kernel
	}{
		{
			"6.18 with everything",
			fstest.MapFS{
				"proc/sys/kernel/osrelease":                    file("6.18.15-cloud-amd64\n"),
				"proc/sys/kernel/sched_cfs_bandwidth_slice_us": file("5000\n"),
				"proc/sys/kernel/sched_autogroup_enabled":      file("1\n"),
				"proc/config.gz":                               {Data: zipped(t, "# comment\nCONFIG_HZ_250=y\nCONFIG_HZ=250\n")},
				"sys/kernel/btf/vmlinux":                       file("..\x00throttled\x00throttled_limbo_list\x00.."),
				"sys/kernel/sched_ext/state":                   file("enabled\n"),
				"sys/kernel/sched_ext/root/ops":                file("lavd\n"),
			},
			Kernel{
				Release: "6.18.15-cloud-amd64", HZ: ptr(250), SliceMicroseconds: ptr(int64(5000)),
				Burst: Yes, StatLocal: Yes, TaskThrottle: Yes, SliceExpiry: No, BTF: Yes, SchedExt: Yes,
				SchedExtScheduler: "lavd", Autogroup: Yes,
			},
		},
		{
			"seed 001's kernel, configuration in /boot",
			fstest.MapFS{
				"proc/sys/kernel/osrelease": file("4.18.0\n"),
				"boot/config-4.18.0":        file("CONFIG_HZ=1000\n"),
				"sys/kernel/btf/vmlinux":    file("\x00expires_seq\x00"),
				"sys/kernel/mm/x":           file(""),
			},
			Kernel{
				Release: "4.18.0", HZ: ptr(1000), Burst: Yes, StatLocal: Yes,
				TaskThrottle: No, SliceExpiry: Yes, BTF: Yes, SchedExt: No, Autogroup: Unknown,
			},
		},
		{
			"nothing readable, junk in what is",
			fstest.MapFS{
				"proc/config.gz": file("not gzip"),
				"proc/sys/kernel/sched_cfs_bandwidth_slice_us": file("many\n"),
			},
			Kernel{
				Burst: Yes, StatLocal: Yes, TaskThrottle: Unknown, SliceExpiry: Unknown,
				BTF: No, SchedExt: Unknown, Autogroup: Unknown,
			},
		},
		{
			// A longer name that contains a member's name is another member.
			"near misses",
			fstest.MapFS{
				"sys/kernel/btf/vmlinux": file("\x00my_expires_seq\x00throttled_limbo_lists\x00"),
				"proc/config.gz":         {Data: zipped(t, "CONFIG_HZ=-3\n")},
			},
			Kernel{
				Burst: Yes, StatLocal: Yes, TaskThrottle: No, SliceExpiry: No,
				BTF: Yes, SchedExt: No, Autogroup: Unknown,
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, ReadKernel(tc.root, Yes, Yes)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestBehaviourNamesWhatWasFound(t *testing.T) {
	k := Kernel{HZ: ptr(250), TaskThrottle: Yes, SliceExpiry: Yes, StatLocal: No, SchedExtScheduler: "lavd"}
	says := strings.Join(k.Behaviour(), "\n")
	for _, want := range []string{"4 ms late", "return to user mode (6.18", "a bug of Linux 4.18 to 5.3", "no cpu.stat.local", "lavd"} {
		if !strings.Contains(says, want) {
			t.Errorf("%q does not say %q", says, want)
		}
	}
	if says := (Kernel{TaskThrottle: Unknown, SliceExpiry: Unknown, StatLocal: Unknown}).Behaviour(); len(says) != 0 {
		t.Errorf("claims %q about a kernel of which nothing is known", says)
	}
}

func TestManagers(t *testing.T) {
	root := fstest.MapFS{
		"var/lib/kubelet/cpu_manager_state":        file(`{"policyName":"static","defaultCpuSet":"0,2","entries":{},"checksum":1}`),
		"var/lib/kubelet/plugins/dra.cpu/dra.sock": file(""),
		"run/systemd/system/x":                     file(""),
		"sys/devices/system/cpu/isolated":          file("6-7\n"),
	}
	var names []string
	for _, m := range readManagers(root) {
		names = append(names, m.Name)
	}
	if d := cmp.Diff([]string{"kubelet static policy", "DRA CPU driver", "systemd", "isolcpus"}, names); d != "" {
		t.Error(d)
	}
	for name, root := range map[string]fstest.MapFS{
		"none":  {"var/lib/kubelet/cpu_manager_state": file(`{"policyName":"none"}`)},
		"empty": {},
	} {
		if found := readManagers(root); len(found) != 0 {
			t.Errorf("%s: found %v", name, found)
		}
	}
	for name, state := range map[string]string{"garbage": `{"policyName":`, "huge": `{"policyName":"` + strings.Repeat("x", 1000) + `"}`} {
		found := readManagers(fstest.MapFS{"var/lib/kubelet/cpu_manager_state": file(state)})
		if len(found) != 1 || found[0].Name != "kubelet CPU manager" ||
			!strings.Contains(found[0].Means, "not known, so that pin refuses all") {
			t.Errorf("%s: found %v", name, found)
		}
	}
}

func TestAbilities(t *testing.T) {
	full := Report{Kernel: Kernel{StatLocal: Yes}, Controllers: []Controller{
		{Name: cgroup.CPU, Version: cgroup.V2, Dir: "/c", Writable: true, CanMakeCgroups: true},
		{Name: cgroup.CPUSet, Version: cgroup.V2, Dir: "/c", Writable: true, CanMakeCgroups: true},
	}}
	for _, tc := range []struct {
		name   string
		change func(*Report)
		cannot []string
		why    string
	}{
		{"everything", func(*Report) {}, nil, ""},
		{"no cpuset", func(r *Report) { r.Controllers = r.Controllers[:1] }, []string{"demo"}, "the cpuset controller is not mounted"},
		{"ordinary user", func(r *Report) { r.Controllers[0].Writable = false }, []string{"demo"}, "run as root"},
		{"root without CAP_DAC_OVERRIDE", func(r *Report) { r.Controllers[1].CanMakeCgroups = false }, []string{"demo"}, "run as root"},
		{"no cpu controller", func(r *Report) { r.Controllers = nil }, []string{"see throttling (ls)", "demo"}, "mounted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := full
			r.Controllers = append([]Controller(nil), full.Controllers...)
			tc.change(&r)
			var cannot []string
			for _, a := range abilities(r) {
				if a.Why == "" {
					t.Errorf("%s: no reason given", a.What)
				}
				if a.Can {
					continue
				}
				cannot = append(cannot, a.What)
				if !strings.Contains(a.Why, tc.why) {
					t.Errorf("%s: %q does not say %q", a.What, a.Why, tc.why)
				}
			}
			if d := cmp.Diff(tc.cannot, cannot); d != "" {
				t.Error(d)
			}
		})
	}
}

// Remedies write files, not the folder of the hierarchy.
func TestWritten(t *testing.T) {
	top := t.TempDir()
	group := filepath.Join(top, "pod")
	if err := os.Mkdir(group, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cpu.max", "cpu.cfs_quota_us"} {
		if err := os.WriteFile(filepath.Join(group, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		of      cgroup.Controller
		version cgroup.Version
		want    string
	}{
		{cgroup.CPU, cgroup.V2, filepath.Join(group, "cpu.max")},
		{cgroup.CPU, cgroup.V1, filepath.Join(group, "cpu.cfs_quota_us")},
		{cgroup.CPUSet, cgroup.V2, top}, // not enabled for this cgroup
		{cgroup.CPUAcct, cgroup.V1, top},
	} {
		if got := written(c.of, c.version, group, top); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.of, c.version, got, c.want)
		}
	}
}

func TestNoRealtime(t *testing.T) {
	top := t.TempDir()
	write := func(group, us string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(top, group), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, group, "cpu.rt_runtime_us"), []byte(us), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := func(us string) fstest.MapFS { return fstest.MapFS{"proc/sys/kernel/sched_rt_runtime_us": file(us)} }
	if why := noRealtime(root("950000\n"), top); why != "" {
		t.Errorf("refused: %s", why)
	}
	if why := noRealtime(root("-1\n"), top); !strings.Contains(why, "sched_rt_runtime_us is -1") {
		t.Errorf("%q", why)
	}
	write(".", "950000\n")
	alone := noRealtime(fstest.MapFS{}, top)
	if !strings.Contains(alone, "cpu.rt_runtime_us is 0") {
		t.Errorf("%q", alone)
	}
	write("stranger", "0\n")
	if why := noRealtime(fstest.MapFS{}, top); why != alone {
		t.Errorf("a new cgroup of anybody changes the answer: %q, was %q", why, alone)
	}
	write("prepared", "100000\n")
	if why := noRealtime(fstest.MapFS{}, top); why != "" {
		t.Errorf("refused: %s", why)
	}
}

func TestNoInterrupts(t *testing.T) {
	if why := noInterrupts(filepath.Join(t.TempDir(), "none")); !strings.Contains(why, "no such file") ||
		!strings.Contains(why, "outside a container") {
		t.Errorf("%q", why)
	}
}

func TestThreadsPerCore(t *testing.T) {
	for name, want := range map[string]int{"xeon-snc2-112": 2, "hybrid-16": 2} {
		if got := threadsPerCore(topologytest.Machine(t, name)); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if got := threadsPerCore(topologytest.Shape{CoresPerL3: 4}.Machine(t)); got != 1 {
		t.Errorf("%d, want 1", got)
	}
	if got := threadsPerCore(topology.Machine{CPUs: []topology.CPU{{Online: true, Core: topology.Unknown}}}); got != 0 {
		t.Errorf("%d, want 0: not known", got)
	}
}

// Reads the machine that runs the tests, without extra rights.
func TestGatherHere(t *testing.T) {
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	r := Gather(h, os.DirFS("/"), 1000)
	if r.Kernel.Release == "" || r.CPUs < 1 || len(r.Can) == 0 {
		t.Errorf("missing what every Linux host tells: %+v", r)
	}
	if r.Root {
		t.Error("uid 1000 is not root")
	}
}
