package cgroup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// realV1 opens the real host and makes a test cgroup in every v1 hierarchy, removed afterwards.
func realV1(t *testing.T) (*cgroup.Host, string) {
	require.Root(t)
	require.CgroupV1(t)
	h, base := realBase(t, cgroup.V1)
	for _, file := range []string{cgroup.FileCPUs, cgroup.FileMems} {
		text, err := h.Read(cgroup.CPUSet, "/", file)
		must(t, err)
		must(t, h.Write(cgroup.CPUSet, base, file, text))
	}
	return h, base
}

// realV2 does the same on v2, with cpu and cpuset enabled for the children.
func realV2(t *testing.T) (*cgroup.Host, string) {
	require.Root(t)
	require.CgroupV2(t)
	h, base := realBase(t, cgroup.V2)
	must(t, h.Write(cgroup.CPU, base, cgroup.FileSubtreeControl, "+cpu +cpuset"))
	return h, base
}

// onBoth runs a test on each version that this machine has.
func onBoth(t *testing.T, test func(t *testing.T, h *cgroup.Host, base string, v cgroup.Version)) {
	t.Run("v1", func(t *testing.T) {
		h, base := realV1(t)
		test(t, h, base, cgroup.V1)
	})
	t.Run("v2", func(t *testing.T) {
		h, base := realV2(t)
		test(t, h, base, cgroup.V2)
	})
}

func realBase(t *testing.T, v cgroup.Version) (*cgroup.Host, string) {
	h, err := cgroup.Open("/proc")
	must(t, err)
	if got, _ := h.Version(cgroup.CPU); got != v {
		t.Skipf("cpu is on %v here", got)
	}
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
	return h, base
}

// limit sets a cgroup's limit.
func limit(t *testing.T, h *cgroup.Host, v cgroup.Version, path string, quota, period time.Duration) {
	t.Helper()
	cur, err := cgroup.ReadLimit(h, path)
	must(t, err)
	for _, w := range cgroup.LimitWrites(v, cur, cgroup.Limit{Quota: quota, Period: period}, false) {
		must(t, h.Write(cgroup.CPU, path, w.File, w.Value))
	}
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

// start runs a shell command inside the given cgroups until the test ends, at most 20 s.
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
