package identify

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// Ids of other users in tests. No account has them.
const otherUser, otherGroup = 61234, 61235

// classes is a folder with Named.class that everybody may read, made once; TestMain removes it. Not below /tmp, which one
// of the JVMs has for its own.
var classes = sync.OnceValues(func() (string, error) {
	made.Store(true)
	dir, err := os.MkdirTemp("/var/tmp", "unthrottle-ask")
	if err != nil {
		return "", err
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		return dir, err
	}
	if out, err := exec.Command("javac", "--release", "17", "-d", dir, "testdata/Named.java").CombinedOutput(); err != nil {
		return dir, fmt.Errorf("javac: %w: %s", err, out)
	}
	return dir, nil
})

var made atomic.Bool // classes was asked for

// named is the command that runs Named, quick to start.
func named(t *testing.T, java string, options ...string) []string {
	t.Helper()
	dir, err := classes()
	if err != nil {
		t.Fatal(err)
	}
	command := append([]string{java, "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"}, options...)
	return append(command, "-cp", dir, "Named")
}

// start runs a command until the test's end; ready is the line that says that it has begun.
func start(t *testing.T, attr *syscall.SysProcAttr, ready string, command ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = attr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
	})
	waitForArguments(t, cmd.Process.Pid)
	if ready == "" {
		return cmd
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != ready {
		t.Fatalf("%v: %q, %v", command, line, err)
	}
	go io.Copy(io.Discard, lines)
	return cmd
}

// waitForArguments waits for the end of execve(2). exec.Cmd.Start returns when its pipe is closed, which is before the
// process has its arguments (begin_new_exec and create_elf_tables of the kernel).
func waitForArguments(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d has no arguments after a minute", pid)
		}
	}
}

func runs(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil || strings.Contains(string(text), "State:\tZ") {
		t.Fatalf("the process has ended: %v", err)
	}
}

// TestJVMForReal asks JVMs that run as us, as another user, and as another user in namespaces of their own, as
// containers do. Every name must be that of the thread it is told for, by the comm that the kernel has.
func TestJVMForReal(t *testing.T) {
	require.Root(t)
	javas := require.JDK(t)
	stranger := &syscall.Credential{Uid: otherUser, Gid: otherGroup}
	for _, java := range javas {
		for _, c := range []struct {
			name   string
			attr   *syscall.SysProcAttr
			before []string // of the java command
		}{
			{"our user", &syscall.SysProcAttr{}, nil},
			{"another user", &syscall.SysProcAttr{Credential: stranger}, nil},
			{"another PID namespace", &syscall.SysProcAttr{Credential: stranger, Cloneflags: unix.CLONE_NEWPID}, nil},
			{"another user namespace", &syscall.SysProcAttr{
				Cloneflags:                 unix.CLONE_NEWPID | unix.CLONE_NEWUSER,
				Credential:                 &syscall.Credential{}, // root there, an ordinary user here
				UidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: otherUser, Size: 1}},
				GidMappings:                []syscall.SysProcIDMap{{ContainerID: 0, HostID: otherGroup, Size: 1}},
				GidMappingsEnableSetgroups: true,
			}, nil},
			{"another mount namespace", &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}, []string{"sh", "-c",
				fmt.Sprintf(`mount -t tmpfs -o mode=1777 none /tmp && exec setpriv --reuid %d --regid %d --clear-groups "$@"`, otherUser, otherGroup), "sh"}},
		} {
			version := filepath.Base(filepath.Dir(filepath.Dir(java)))
			t.Run(version+"/"+c.name, func(t *testing.T) {
				command := append(slices.Clone(c.before), named(t, java)...)
				cmd := start(t, c.attr, "ready", command...)
				for range 2 { // the first time the JVM opens its socket, the second it is there
					names, err := within(context.Background(), time.Minute, cmd.Process.Pid) // as tests share the machine
					if err != nil {
						t.Fatal(err)
					}
					checkNames(t, cmd.Process.Pid, names)
				}
				runs(t, cmd)
				if c.before != nil {
					if _, err := os.Lstat("/tmp/.java_pid" + strconv.Itoa(cmd.Process.Pid)); !errors.Is(err, os.ErrNotExist) {
						t.Errorf("its socket is in our /tmp: %v", err)
					}
				}
				for _, number := range []string{strconv.Itoa(cmd.Process.Pid), "1"} { // 1 in a namespace of its own
					if _, err := os.Lstat("/tmp/.attach_pid" + number); !errors.Is(err, os.ErrNotExist) {
						t.Errorf(".attach_pid%s is left behind: %v", number, err)
					}
				}
			})
		}
	}
}

func checkNames(t *testing.T, pid int, names map[uint32]string) {
	t.Helper()
	found := map[string]bool{}
	for tid, name := range names {
		found[name] = true
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/comm", pid, tid))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		first, middle := threadpool.Shorten(name)
		if got := strings.TrimSuffix(string(comm), "\n"); got != first && got != middle && name != "main" {
			t.Errorf("thread %d is called %q, by the JVM %q", tid, got, name)
		}
	}
	for _, want := range []string{"main", "VM Thread", "http-nio-8080-exec-1", "http-nio-8080-exec-12", "short",
		`a " #1 nid=0x1 quote`, "ForkJoinPool.commonPool-worker-3"} {
		if !found[want] {
			t.Errorf("no thread %q in %v", want, names)
		}
	}
}

// TestNoHarm: what is no JVM, or would die of the signal, is left alone and goes on.
func TestNoHarm(t *testing.T) {
	require.Root(t)
	sleeper := start(t, nil, "", "sleep", "600")
	t.Cleanup(func() { sleeper.Process.Kill() })
	_, err := JVM(context.Background(), sleeper.Process.Pid)
	if !errors.Is(err, errNotJVM) || !strings.Contains(err.Error(), "libjvm.so is not mapped") {
		t.Errorf("sleep: %v", err)
	}
	runs(t, sleeper)

	javas := require.JDK(t)
	deaf := start(t, nil, "ready", named(t, javas[0], "-Xrs")...)
	if _, err := JVM(context.Background(), deaf.Process.Pid); !errors.Is(err, errNotJVM) || !strings.Contains(err.Error(), "-Xrs") {
		t.Errorf("a JVM with -Xrs: %v", err)
	}
	runs(t, deaf)

	mute := start(t, nil, "ready", named(t, javas[0], "-XX:+DisableAttachMechanism")...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := JVM(ctx, mute.Process.Pid); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "no answer within 1s") {
		t.Errorf("a JVM that may not be asked: %v", err)
	}
	runs(t, mute)
	if left, _ := filepath.Glob("/tmp/.attach_pid" + strconv.Itoa(mute.Process.Pid)); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestJVMOfNoProcess(t *testing.T) {
	if _, err := JVM(context.Background(), 1<<22+1); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("%v", err)
	}
}

// TestBelowStaysBelow: links in the target's /tmp lead nowhere outside its root.
func TestBelowStaysBelow(t *testing.T) {
	dir := t.TempDir()
	outside, root := filepath.Join(dir, "outside"), filepath.Join(dir, "root")
	for _, d := range []string{outside, root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../outside", filepath.Join(root, "tmp")); err != nil {
		t.Fatal(err)
	}
	p := targetIn(t, root)
	if _, err := p.trigger(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("through a link that leads outside: %v", err)
	}

	// The same link, in a root that has such a folder, as the JVM itself would follow it.
	inside := filepath.Join(root, "outside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	forget, err := p.trigger()
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(inside, ".attach_pid7")
	if _, err := os.Stat(made); err != nil {
		t.Error(err)
	}
	forget()
	if _, err := os.Stat(made); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("not removed: %v", err)
	}
	if found, _ := os.ReadDir(outside); len(found) != 0 {
		t.Errorf("made outside: %v", found)
	}

	// A file that another user made stays, whatever it is.
	if err := os.Symlink("/etc/passwd", made); err != nil {
		t.Fatal(err)
	}
	if forget, err = p.trigger(); err != nil {
		t.Fatal(err)
	}
	forget()
	if _, err := os.Lstat(made); err != nil {
		t.Error(err)
	}
}

// targetIn is a target of our own user with this root.
func targetIn(t *testing.T, root string) *target {
	t.Helper()
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &target{root: fd, status: status{uid: uint32(os.Geteuid()), gid: uint32(os.Getegid()), inner: 7}}
}

// TestDialOnlyTheJVMsOwn: it does not connect to a socket of another user.
func TestDialOnlyTheJVMsOwn(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o755); err != nil {
		t.Fatal(err)
	}
	p := targetIn(t, root)
	if err := os.WriteFile(filepath.Join(root, "tmp/.java_pid7"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.dial(); err == nil || !strings.Contains(err.Error(), "another user made it") {
		t.Errorf("a plain file: %v", err)
	}
}
