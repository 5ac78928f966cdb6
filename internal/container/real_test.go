package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// realBase makes a test cgroup in the real cpu hierarchy; it and its descendants are removed afterwards.
func realBase(t *testing.T) (*cgroup.Host, string) {
	require.Root(t)
	h, err := cgroup.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := h.Mount(cgroup.CPU); !ok {
		t.Skip("no cpu controller here")
	}
	base := fmt.Sprintf("/unthrottle-container-%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := h.Make(cgroup.CPU, base); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		removeAll(h, base)
		if cgroup.Exists(h, cgroup.CPU, base) {
			t.Errorf("%s is left behind", base)
		}
	})
	return h, base
}

func removeAll(h *cgroup.Host, path string) {
	children, _ := h.Children(cgroup.CPU, path)
	for _, child := range children {
		removeAll(h, child)
	}
	// A process that was just killed leaves its cgroup a moment later.
	for range 200 {
		if err := h.Remove(cgroup.CPU, path); !errors.Is(err, unix.EBUSY) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestRealContainer(t *testing.T) {
	require.EachCgroup(t, "the folders of containers")
	h, base := realBase(t)
	docker := base + "/docker/" + idA
	for _, path := range []string{base + "/docker", docker, docker + "/inner", base + "/plain"} {
		if err := h.Make(cgroup.CPU, path); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	sleeper := exec.CommandContext(ctx, "sleep", "20")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = sleeper.Wait()
	})
	if err := h.Attach(cgroup.CPU, docker+"/inner", sleeper.Process.Pid); err != nil {
		t.Fatal(err)
	}
	containers, err := List(h, Options{Scope: base})
	if err != nil || len(containers) != 2 || containers[0].Runtime != Docker || containers[0].Group.Path != docker ||
		containers[1].Group.Path != base+"/plain" {
		t.Fatalf("%+v, %v", containers, err)
	}
	pid := fmt.Sprintf("pid:%d", sleeper.Process.Pid)
	for target, path := range map[string]string{pid: docker, idA[:6]: docker, docker + "/inner": docker + "/inner",
		h.Dir(cgroup.CPU, base): base} {
		got, err := Resolve(h, containers, target)
		if err != nil || got.Group.Path != path {
			t.Errorf("%s: %s, %v; want %s", target, got.Group.Path, err, path)
		}
	}
	// The oldest process counts, in a cgroup below too. One that is gone by then is left out.
	proc := fstest.MapFS{"uptime": {Data: []byte("100.00 1.00\n")}}
	if age, ok := Age(h, proc, containers[0]); ok {
		t.Errorf("the age of no process is %v", age)
	}
	proc[strconv.Itoa(sleeper.Process.Pid)+"/stat"] = &fstest.MapFile{
		Data: []byte("7 (sleep) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9000 0 0")}
	if age, ok := Age(h, proc, containers[0]); !ok || age != 10*time.Second {
		t.Errorf("age %v, %v; want 10s", age, ok)
	}
	if age, ok := Age(h, proc, containers[1]); ok {
		t.Errorf("an empty cgroup is %v old", age)
	}
	if _, ok := h.Mount(cgroup.CPUAcct); ok && !h.SameHierarchy(cgroup.CPU, cgroup.CPUAcct) {
		if containers[0].Group.CPUAcctPath == docker {
			t.Errorf("there is no such cgroup in cpuacct: %+v", containers[0].Group)
		}
	}
}

// Listing continues while cgroups appear and vanish.
func TestRealChurn(t *testing.T) {
	h, base := realBase(t)
	done := make(chan error, 1)
	go func() {
		for i := range 1000 {
			path := fmt.Sprintf("%s/%d", base, i%53)
			if h.Make(cgroup.CPU, path) == nil {
				continue
			}
			if err := h.Remove(cgroup.CPU, path); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	l := NewLister(h, Options{Scope: base})
	for {
		if _, err := l.List(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
