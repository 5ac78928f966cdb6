package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

const testPrefix = "unthrottle-demo-"

func TestNames(t *testing.T) {
	o := owner{"ab12", 77, 123456, 4026531836}
	name := o.name(testPrefix)
	if name != "unthrottle-demo-ab12.77.123456.4026531836" {
		t.Error(name)
	}
	if got, ok := parseOwner(testPrefix, name); !ok || got != o {
		t.Errorf("%+v came back as %+v, %v", o, got, ok)
	}
	for _, foreign := range []string{
		"", "unthrottle-demo-", "unthrottle-demo-ab12", "unthrottle-demo-ab12.77.123456", "unthrottle-demo-ab12.77.123456.1.2",
		"unthrottle-demo-AB.77.1.1", "unthrottle-demo-ab.077.1.1", "unthrottle-demo-ab.-7.1.1", "unthrottle-demo-ab.0.1.1",
		"unthrottle-demo-.7.1.1", "unthrottle-demo-ab.7.1.+1", "unthrottle-demo-ab.99999999999.1.1", "docker-ab.7.1.1",
	} {
		if got, ok := parseOwner(testPrefix, foreign); ok {
			t.Errorf("%q is taken as %+v", foreign, got)
		}
	}
}

func FuzzName(f *testing.F) {
	f.Add("unthrottle-demo-ab12.77.123456.4026531836")
	f.Add("unthrottle-demo-ab.077.1.1")
	f.Fuzz(func(t *testing.T, name string) {
		if o, ok := parseOwner(testPrefix, name); ok && o.name(testPrefix) != name {
			t.Fatalf("%q is read as %q", name, o.name(testPrefix))
		}
	})
}

func TestGone(t *testing.T) {
	us, err := ourselves("/proc", "x")
	if err != nil {
		t.Fatal(err)
	}
	earlier, elsewhere, never := us, us, us
	earlier.started--
	elsewhere.pidNS++
	elsewhere.started--
	never.pid = 1 << 30
	for name, c := range map[string]struct {
		o    owner
		want bool
	}{"us": {us, false}, "the PID's last user": {earlier, true}, "another namespace": {elsewhere, false}, "no process": {never, true}} {
		if got := c.o.gone("/proc", us.pidNS); got != c.want {
			t.Errorf("%s: gone %v", name, got)
		}
	}
	if _, err := ourselves("/proc", "../x"); err == nil {
		t.Error("a run that is no name was taken")
	}
	if _, err := ourselves(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "mount /proc") {
		t.Errorf("without /proc: %v", err)
	}
}

// v2 is a cgroup v2 whose root enables only what it is told.
type v2 struct {
	cgroup.FS
	enabled string
}

func (f v2) Version(cgroup.Controller) (cgroup.Version, bool) { return cgroup.V2, true }
func (f v2) Read(_ cgroup.Controller, _, file string) (string, error) {
	if file != cgroup.FileSubtreeControl {
		return "", errors.New("not asked for")
	}
	return f.enabled, nil
}

func TestV2ScopeMustEnableBothControllers(t *testing.T) {
	p := places{scope: cgroup.Group{Path: "/", CPUSetPath: "/", CPUAcctPath: "/"}}
	p.fs = v2{enabled: "cpuset cpu io memory"}
	if err := p.checkScope(); err != nil {
		t.Error(err)
	}
	p.fs = v2{enabled: "cpu memory"}
	err := p.checkScope()
	missing := new(NotMeasurable)
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "cgroup /: cgroup.subtree_control lacks cpuset") ||
		!strings.Contains(err.Error(), "--parent") {
		t.Errorf("got %v", err)
	}
}

func TestAccountingMounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mountinfo")
	text := `30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 25 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 25 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
34 25 0:29 /docker/a /else/memory rw - cgroup cgroup rw,memory
35 25 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
36 25 0:31 / /both rw - cgroup cgroup rw,cpuset,memory
broken
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := accountingMounts(file); !slices.Equal(got, []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"}) {
		t.Errorf("%q", got)
	}
	if got := accountingMounts(file + "none"); got != nil {
		t.Errorf("%q", got)
	}
}
