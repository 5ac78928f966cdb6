package identify

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

// The process's first thread runs TestMain, and nothing else may be sent there before.
func init() { runtime.LockOSThread() }

// ranOn is the thread on which TestMain, on the first thread, had something done.
var ranOn int

func TestMain(m *testing.M) {
	onOwnThread(func() { ranOn = unix.Gettid() })
	runtime.UnlockOSThread()
	code := m.Run()
	if made.Load() {
		dir, _ := classes()
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// TestFirstThreadKeepsItsRights: what is done with other rights is never done on the process's first thread, not even if
// it is asked for there: that one would keep them, and show them as the process's.
func TestFirstThreadKeepsItsRights(t *testing.T) {
	if ranOn == 0 || ranOn == os.Getpid() {
		t.Errorf("ran on thread %d of process %d", ranOn, os.Getpid())
	}
}

// TestAsChangesOneThread: the rights are those of one thread, for as long as it lasts.
func TestAsChangesOneThread(t *testing.T) {
	require.Root(t)
	file := filepath.Join(t.TempDir(), "made")
	os.Chmod(filepath.Dir(file), 0o777)
	os.Chmod(filepath.Dir(filepath.Dir(file)), 0o755)
	err := asUser(otherUser, otherGroup, func() error {
		if unix.Geteuid() != otherUser || unix.Getegid() != otherGroup || unix.Getuid() != 0 {
			return fmt.Errorf("euid %d, egid %d, uid %d", unix.Geteuid(), unix.Getegid(), unix.Getuid())
		}
		fd, err := unix.Open(file, unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil || st.Uid != otherUser || st.Gid != otherGroup {
		t.Errorf("made by %d:%d, %v", st.Uid, st.Gid, err)
	}
	for range 50 {
		if err := asUser(otherUser, otherGroup, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		id := make(chan int)
		go func() { id <- unix.Geteuid() }()
		if got := <-id; got != 0 {
			t.Fatalf("another goroutine runs as %d", got)
		}
	}
	// Threads end a moment after what they did.
	for range 100 {
		statuses, err := filepath.Glob("/proc/self/task/*/status")
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, file := range statuses {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), strconv.Itoa(otherUser)) {
				left++
			}
		}
		if left == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("threads with the other user's rights are left")
}
