package cgroup_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// insideVariable marks a test binary inside the namespaces; its value is the cgroup's path outside.
const insideVariable = "UNTHROTTLE_TEST_INSIDE"

// In a cgroup namespace of its own, with a mount namespace in which the cpu hierarchy is read-only.
func TestRealNamespaces(t *testing.T) {
	require.EachCgroup(t, "the files of cgroups")
	if base := os.Getenv(insideVariable); base != "" {
		insideNamespaces(t, base)
		return
	}
	h, base := realV1(t)
	if out, err := exec.Command("unshare", "--cgroup", "--mount", "--propagation", "private", "true").CombinedOutput(); err != nil {
		t.Skipf("needs util-linux's unshare(1): %v %s", err, out)
	}
	script := `read go
		exec unshare --cgroup --mount --propagation private sh -c 'mount -o remount,bind,ro "$1" && exec "$2" -test.run "^TestRealNamespaces$" -test.v' - "$@"`
	cmd := exec.Command("sh", "-c", script, "-", h.Dir(cgroup.CPU, "/"), os.Args[0])
	cmd.Env = append(os.Environ(), insideVariable+"="+base)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	must(t, cmd.Start())
	deadline := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer deadline.Stop()
	must(t, h.Attach(cgroup.CPU, base, cmd.Process.Pid))
	_, err = stdin.Write([]byte("go\n"))
	must(t, err)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "inside: done") {
		t.Fatalf("the inside did not run:\n%s", out.String())
	}
}

func insideNamespaces(t *testing.T, base string) {
	h, err := cgroup.Open("/proc")
	must(t, err)
	if !h.PrivateNamespace() {
		t.Error("not seen as a private namespace")
	}
	m, _ := h.Mount(cgroup.CPU)
	if !m.ReadOnly || !strings.HasPrefix(m.Root, "/..") {
		t.Errorf("mount %+v", m)
	}
	if !cgroup.Exists(h, cgroup.CPU, base) {
		t.Errorf("%s cannot be seen", base)
	}
	if path, ok, err := h.Of(os.Getpid(), cgroup.CPU); ok || err != nil {
		t.Errorf("we cannot know where we are: %q, %v", path, err)
	}
	err = h.Write(cgroup.CPU, base, "cpu.shares", "512")
	if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), "mounted read-only") {
		t.Errorf("write: %v", err)
	}
	t.Log("inside: done")
}
