package demo

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/sandbox"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

func TestRunShowsThrottlingAndItsEnd(t *testing.T) {
	require.Alone(t, "how often a sleeper woke in two seconds, and each burner's work, with what an idle host does")
	b := newTestbed(t)
	o := b.options()
	o.Seconds, o.Burners = 2, 0
	if require.InLab() {
		o.Seconds = 5 // beside burners on emulated CPUs the sleeper may not wake once in two
	}
	var events []string
	o.Progress = func(e Event) { events = append(events, e.Doing) }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	b.empty(t)
	if !r.Restored {
		t.Error("not restored")
	}
	before, after := r.Before, r.After
	if *before.ThrottledPeriods*2 < *before.Periods || *before.Periods < 10 {
		t.Errorf("quota: %d of %d periods throttled, want most", *before.ThrottledPeriods, *before.Periods)
	}
	if after.ThrottledPeriods != nil || *after.Periods != 0 {
		t.Errorf("pin: periods %v, throttled %v; the kernel does not count without a quota, so want 0 and not counted",
			*after.Periods, after.ThrottledPeriods)
	}
	if *r.CPUSet.ThrottledSeconds > *before.ThrottledSeconds/2 {
		t.Errorf("cpuset: throttled %v s, quota %v s", *r.CPUSet.ThrottledSeconds, *before.ThrottledSeconds)
	}
	// How much shorter sleeps are with pin is not asserted: in a guest without
	// CPUs of its own that says nothing. That the quota stops them is.
	if before.Max == nil {
		t.Fatalf("quota: no sleep ended in %v s", o.Seconds)
	}
	if *before.Max < 40 {
		t.Errorf("quota: the longest sleep took %v ms, want about half a period or more", *before.Max)
	}
	if r.Threads.Burners != r.Quota || before.Burners < 32 || after.CPUs != r.Pinned {
		t.Errorf("variants: %+v", r)
	}
	for _, a := range r.Variants() {
		checkVariant(t, a, r)
	}
	if events[0] != "looking for idle CPUs" || events[len(events)-1] != "cleaning up" {
		t.Errorf("events %q", events)
	}
}

// checkVariant checks what must hold in any variant on any host.
func checkVariant(t *testing.T, a Variant, r Result) {
	t.Helper()
	if a.P50 == nil || *a.P50 < r.Sleep || *a.P99 < *a.P50 || *a.Max < *a.P99 || a.WorkPerSecond == nil {
		t.Errorf("%s: %+v", a.Name, a)
	}
	sum := 0
	for i, b := range a.Histogram {
		sum += b.Count
		if first := r.Before.Histogram[i]; b.FromMs != first.FromMs || b.ToMs != first.ToMs {
			t.Errorf("%s: bin %d is %+v, in variant quota %+v", a.Name, i, b, first)
		}
	}
	if sum != a.Sleeps {
		t.Errorf("%s: %d sleeps in the histogram, %d measured", a.Name, sum, a.Sleeps)
	}
	if a.Quota != nil && *a.UsedCPUs > float64(*a.Quota)*1.3 {
		t.Errorf("%s: used %v CPUs under a quota of %d", a.Name, *a.UsedCPUs, *a.Quota)
	}
}

func TestInterruptedRunCleansUp(t *testing.T) {
	require.Alone(t, "a CPU of its own: another test's pin would leave none")
	for _, at := range []string{"looking for idle CPUs", "quota", "pin"} {
		t.Run(at, func(t *testing.T) {
			b := newTestbed(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o := b.options()
			o.Progress = func(e Event) {
				if e.Doing == at {
					cancel()
				}
			}
			r, err := Run(ctx, o)
			if !errors.Is(err, context.Canceled) || r.Restored {
				t.Errorf("got %v, restored %v", err, r.Restored)
			}
			b.empty(t)
		})
	}
}

// faulty fails its n-th change, or every read of one file.
type faulty struct {
	cgroup.FS
	left int
	file string
	what string // what failed
}

var errFault = &cgroup.Error{Op: cgroup.OpWrite, Errno: unix.EACCES, Why: "a fault of the test"}

func (f *faulty) fails(what string) error {
	if f.left--; f.left != 0 {
		return nil
	}
	f.what = what
	return errFault
}

func (f *faulty) Make(c cgroup.Controller, path string) error {
	if err := f.fails("make"); err != nil {
		return err
	}
	return f.FS.Make(c, path)
}

func (f *faulty) Write(c cgroup.Controller, path, file, value string) error {
	if err := f.fails("write " + file); err != nil {
		return err
	}
	return f.FS.Write(c, path, file, value)
}

func (f *faulty) Attach(c cgroup.Controller, path string, pid int) error {
	if err := f.fails("attach"); err != nil {
		return err
	}
	return f.FS.Attach(c, path, pid)
}

func (f *faulty) Read(c cgroup.Controller, path, file string) (string, error) {
	if file == f.file {
		f.what = "read " + file
		return "", errFault
	}
	return f.FS.Read(c, path, file)
}

// On v1 every change up to the first of the second variant fails once.
func TestFailureAtAnyStepCleansUp(t *testing.T) {
	require.EachCgroup(t, "the cgroups that are made")
	b := newTestbed(t)
	faults := []*faulty{{file: cgroup.FileStat}}
	every := 1
	if require.InLab() {
		every = 3 // a run takes seconds there, and this host walked all
	}
	for n := 1; n <= 17; n += every {
		faults = append(faults, &faulty{left: n})
	}
	seen := map[string]bool{}
	for _, f := range faults {
		f.FS = b.Host
		o := b.options()
		o.FS = f
		r, err := Run(t.Context(), o)
		var fault *cgroup.Error
		if !errors.As(err, &fault) || r.Restored {
			t.Fatalf("%q: got %v, restored %v", f.what, err, r.Restored)
		}
		if missing := new(NotMeasurable); f.what == "make" && (!errors.As(err, &missing) || missing.WayOut != "run as root") {
			t.Errorf("no right to make a cgroup: got %v", err)
		}
		b.empty(t)
		seen[strings.Fields(f.what)[0]] = true
	}
	if len(seen) != 4 {
		t.Errorf("steps that failed: %v, want make, write, attach and read", seen)
	}
}

func TestKilledRunIsCleanedUpByTheNext(t *testing.T) {
	b := newTestbed(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), envVictim+"="+b.Top)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	lines := bufio.NewScanner(out)
	for n := 0; n < 5 && lines.Scan(); {
		if lines.Text() == "quota" {
			n++ // the child has burnt for a while
		}
	}
	if left, err := sandbox.RemoveLeftovers(b.Host, b.Top, Prefix); err != nil || left.Removed != 0 ||
		len(left.Stay) > 0 || len(b.demos(t)) == 0 {
		t.Errorf("a running demo's cgroups: %+v, %v, now %q", left, err, b.demos(t))
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if len(b.demos(t)) == 0 {
		t.Fatal("the killed run left nothing to clean up")
	}
	r, err := Run(t.Context(), b.options())
	if err != nil || r.Removed != 1 || !r.Restored {
		t.Errorf("next run: %v, removed %d, notes %q", err, r.Removed, r.Notes)
	}
	b.empty(t)
}

func TestRefusals(t *testing.T) {
	b := newTestbed(t)
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"seconds":  {func(o *Options) { o.Seconds = -1 }, "outside 0.5s to 600s"},
		"run id":   {func(o *Options) { o.RunID = "../x" }, "up to 32 of a-z and 0-9"},
		"scope":    {func(o *Options) { o.Scope = b.Top + "/none" }, "make the cgroup first"},
		"no proc":  {func(o *Options) { o.ProcDir = t.TempDir() }, "a leftover could not be told from a run"},
		"no child": {func(o *Options) { o.Exe = "/bin/false" }, "variant quota"},
	} {
		o := b.options()
		c.change(&o)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		b.empty(t)
	}
	b.Limit(b.Top, 1)
	_, err := Run(t.Context(), b.options())
	if missing := new(NotMeasurable); !errors.As(err, &missing) || !strings.Contains(err.Error(), "has a limit of 1.00 CPUs itself") {
		t.Errorf("a limited scope: %v", err)
	}
	b.empty(t)
}
