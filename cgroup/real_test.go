package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/cgroup"
	"github.com/unthrottle/unthrottle/lab/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// realV1 opens the real host and makes a cgroup of our own in every v1 hierarchy; all of it is gone afterwards.
func realV1(t *testing.T) (*cgroup.Host, string) {
	require.Root(t)
	require.CgroupV1(t)
	h, err := cgroup.Open("/proc")
	must(t, err)
	base := fmt.Sprintf("/unthrottle-cgroup-%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Cleanup(func() {
		for _, c := range cgroup.Controllers() {
			removeAll(h, c, base)
			if cgroup.Exists(h, c, base) {
				t.Errorf("%s %s is left behind", c, base)
			}
		}
	})
	for _, c := range cgroup.Controllers() {
		if !cgroup.Exists(h, c, base) {
			must(t, h.Make(c, base))
		}
	}
	for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
		text, err := h.Read(cgroup.CPUSet, "/", file)
		must(t, err)
		must(t, h.Write(cgroup.CPUSet, base, file, text))
	}
	return h, base
}

func removeAll(h *cgroup.Host, c cgroup.Controller, path string) {
	children, _ := h.Children(c, path)
	for _, child := range children {
		removeAll(h, c, child)
	}
	// A process that was just killed leaves its cgroup a moment later.
	for range 200 {
		if err := h.Remove(c, path); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// start runs a shell command of ours inside the given cgroups until the test ends, at most 20 s.
func start(t *testing.T, h *cgroup.Host, script string, groups map[cgroup.Controller]string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	cmd := exec.CommandContext(ctx, "sh", "-c", "read go; "+script)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	for c, path := range groups {
		must(t, h.Attach(c, path, cmd.Process.Pid))
	}
	_, err = stdin.Write([]byte("go\n"))
	must(t, err)
	return cmd.Process.Pid
}

// A child stopped by its parent's quota has zeros in its own cpu.stat; cpu.stat.local tells (kernels since 6.6).
func TestRealThrottledByTheParent(t *testing.T) {
	h, base := realV1(t)
	child := base + "/child"
	must(t, h.Make(cgroup.CPU, child))
	must(t, h.Write(cgroup.CPU, base, "cpu.cfs_quota_us", "5000"))
	start(t, h, "while :; do :; done", map[cgroup.Controller]string{cgroup.CPU: child})

	levels, err := cgroup.Levels(h, child)
	must(t, err)
	if cpus, limited, at := cgroup.Effective(levels); !limited || cpus != 0.05 || at != base {
		t.Errorf("effective %v %v at %q", cpus, limited, at)
	}
	for range 500 {
		parent, err := cgroup.ReadStat(h, cgroup.Group{Path: base})
		must(t, err)
		own, err := cgroup.ReadStat(h, cgroup.Group{Path: child})
		must(t, err)
		if own.ThrottledTotal == nil {
			t.Skip("this kernel has no cpu.stat.local")
		}
		if parent.ThrottledPeriods >= 3 && *own.ThrottledTotal > 0 {
			if own.ThrottledPeriods != 0 || own.Throttled != 0 {
				t.Errorf("the child's own counters moved: %+v", own)
			}
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("never throttled")
}

func TestRealCounterparts(t *testing.T) {
	h, base := realV1(t)
	if h.SameHierarchy(cgroup.CPU, cgroup.CPUSet) {
		t.Skip("cpu and cpuset share a hierarchy here")
	}
	for _, path := range []string{base + "/unit", base + "/unit/sub", base + "/empty"} {
		must(t, h.Make(cgroup.CPU, path))
	}
	must(t, h.Make(cgroup.CPUSet, base+"/other"))
	for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
		text, err := h.Read(cgroup.CPUSet, base, file)
		must(t, err)
		must(t, h.Write(cgroup.CPUSet, base+"/other", file, text))
	}
	pid := start(t, h, "exec sleep 20", map[cgroup.Controller]string{cgroup.CPU: base + "/unit/sub", cgroup.CPUSet: base + "/other"})
	g, err := h.Group(base + "/unit")
	if err != nil || g.CPUSetPath != base+"/other" {
		t.Errorf("by a member of a descendant: %+v, %v", g, err)
	}
	if g, err = h.Group(base + "/empty"); err != nil || g.CPUSetPath != base {
		t.Errorf("without members the nearest ancestor that exists: %+v, %v", g, err)
	}
	if path, ok, err := h.Of(pid, cgroup.CPU); err != nil || !ok || path != base+"/unit/sub" {
		t.Errorf("of the process: %q %v %v", path, ok, err)
	}
}

// Between any two limits that parent and child allow, the kernel takes every write that LimitWrites plans.
func TestRealLimitWritesAreTaken(t *testing.T) {
	h, base := realV1(t)
	mid, leaf := base+"/mid", base+"/mid/leaf"
	must(t, h.Make(cgroup.CPU, mid))
	must(t, h.Make(cgroup.CPU, leaf))
	must(t, h.Write(cgroup.CPU, base, "cpu.cfs_quota_us", "80000"))
	must(t, h.Write(cgroup.CPU, leaf, "cpu.cfs_quota_us", "20000"))
	rapid.Check(t, func(t *rapid.T) {
		cur, err := cgroup.ReadLimit(h, mid)
		if err != nil {
			t.Fatal(err)
		}
		want := cgroup.Unlimited()
		want.Period = time.Duration(rapid.SampledFrom([]int{5, 10, 50, 100, 200, 1000}).Draw(t, "period")) * time.Millisecond
		if percent := rapid.IntRange(19, 80).Draw(t, "percent"); percent >= 20 {
			want.Quota = want.Period * time.Duration(percent) / 100
			want.Burst = want.Quota * time.Duration(rapid.IntRange(0, 100).Draw(t, "burst")) / 100
			want.Burst = want.Burst.Truncate(time.Microsecond)
		}
		for _, w := range cgroup.LimitWrites(cgroup.V1, cur, want) {
			if err := h.Write(cgroup.CPU, mid, w.File, w.Value); err != nil {
				t.Fatalf("%+v -> %+v: %v", cur, want, err)
			}
		}
		if got, err := cgroup.ReadLimit(h, mid); err != nil || got != want {
			t.Fatalf("%+v -> %+v: ends at %+v, %v", cur, want, got, err)
		}
	})
}

func TestRealRefusals(t *testing.T) {
	h, base := realV1(t)
	empty := base + "/empty"
	must(t, h.Make(cgroup.CPUSet, empty))
	pid := start(t, h, "exec sleep 20", nil)

	err := h.Attach(cgroup.CPUSet, empty, pid)
	if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "set both first") {
		t.Errorf("attach to an empty cpuset: %v", err)
	}
	must(t, h.Write(cgroup.CPUSet, empty, cgroup.FileCPUs, "0"))
	must(t, h.Write(cgroup.CPUSet, empty, cgroup.FileCPUs, ""))
	if set, _, err := cgroup.CPUs(h, empty); err != nil || !set.IsEmpty() {
		t.Errorf("an empty value must clear the list: %s, %v", set, err)
	}
	if err := h.Write(cgroup.CPU, base, "cpu.shares", ""); !errors.Is(err, cgroup.ErrEmptyValue) {
		t.Errorf("an empty weight: %v", err)
	}
	if err := h.Write(cgroup.CPUSet, "/", cgroup.FileCPUs, "0"); !errors.Is(err, unix.EACCES) {
		t.Errorf("the root's CPUs: %v", err)
	}
	if err := h.Remove(cgroup.CPUSet, base); !errors.Is(err, unix.EBUSY) {
		t.Errorf("rmdir with a child: %v", err)
	}
	if _, err := h.Read(cgroup.CPU, base, "cpu.max"); !errors.Is(err, cgroup.ErrNoFile) {
		t.Errorf("a v2 file on v1: %v", err)
	}
	// A handle that outlives its cgroup gives ENODEV.
	gone := base + "/gone"
	must(t, h.Make(cgroup.CPU, gone))
	f, err := os.OpenFile(h.Dir(cgroup.CPU, gone)+"/cpu.shares", os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	must(t, h.Remove(cgroup.CPU, gone))
	if _, err := f.WriteString("2"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("write through a kept handle: %v", err)
	}
	if err := h.Write(cgroup.CPU, gone, "cpu.shares", "2"); !errors.Is(err, cgroup.ErrNoCgroup) {
		t.Errorf("write to a removed cgroup: %v", err)
	}
}

func TestRealNamesAreData(t *testing.T) {
	h, base := realV1(t)
	names := []string{" blank ", "tab\there", "esc\x1b[31m", "..dots..", "not\xff\xfeutf8", `back\xff\slash`, strings.Repeat("n", 255), strings.Repeat("m", 1000), "-rf", "*", "café\u202e"}
	ids := map[string]uint64{}
	for _, name := range names {
		path := cgroup.Join(base, name)
		must(t, h.Make(cgroup.CPU, path))
		must(t, h.Write(cgroup.CPU, path, "cpu.shares", "512"))
		shares, err := cgroup.ReadShares(h, path)
		if err != nil || shares != 512 {
			t.Errorf("%q: %d, %v", name, shares, err)
		}
		if ids[path], err = h.ID(cgroup.CPU, path); err != nil {
			t.Error(err)
		}
		if back, err := cgroup.CleanPath(h, cgroup.EscapePath(path)); err != nil || back != path {
			t.Errorf("%q comes back as %q, %v", path, back, err)
		}
		if back, err := cgroup.CleanPath(h, h.Dir(cgroup.CPU, path)); err != nil || back != path {
			t.Errorf("directory of %q comes back as %q, %v", path, back, err)
		}
	}
	children, err := h.Children(cgroup.CPU, base)
	if err != nil || len(children) != len(names) {
		t.Errorf("%d children of %d, %v", len(children), len(names), err)
	}
	for _, child := range children {
		if ids[child] == 0 {
			t.Errorf("%q was never made", child)
		}
	}
	if err := h.Make(cgroup.CPU, base+"/new\nline"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("a newline: %v", err)
	}
}

// A walk goes on while cgroups come and go under it.
func TestRealWalkUnderChurn(t *testing.T) {
	h, base := realV1(t)
	done := make(chan error, 1)
	go func() {
		for i := range 1000 {
			path := fmt.Sprintf("%s/%d", base, i%37)
			if err := h.Make(cgroup.CPU, path); err == nil {
				err = h.Make(cgroup.CPU, path+"/x")
				if err != nil {
					done <- err
					return
				}
				continue
			}
			if err := errors.Join(h.Remove(cgroup.CPU, path+"/x"), h.Remove(cgroup.CPU, path)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for walks := 0; ; walks++ {
		select {
		case err := <-done:
			if err != nil || walks == 0 {
				t.Fatalf("%d walks, %v", walks, err)
			}
			return
		default:
		}
		err := h.Walk(base, func(path string) error {
			if _, err := cgroup.ReadStat(h, cgroup.Group{Path: path}); err != nil && !errors.Is(err, cgroup.ErrNoCgroup) && !errors.Is(err, cgroup.ErrNoFile) {
				return err
			}
			return nil
		})
		must(t, err)
	}
}
