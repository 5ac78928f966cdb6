//go:build amd64 || arm64

package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notified are the system calls by which a file is written and replaced.
var notified = []uint32{unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_FSTAT, unix.SYS_WRITE, unix.SYS_FSYNC, unix.SYS_FCHMOD,
	unix.SYS_CLOSE, unix.SYS_RENAMEAT, unix.SYS_UNLINKAT, unix.SYS_FALLOCATE}

// notification and response are struct seccomp_notif and seccomp_notif_resp of linux/seccomp.h.
type (
	notification struct {
		id         uint64
		pid, flags uint32
		nr         int32
		arch       uint32
		ip         uint64
		args       [6]uint64
	}
	response struct {
		id    uint64
		val   int64
		errno int32
		flags uint32
	}
)

// withFaults does something on a thread of its own, whose system calls the kernel lets fail with EIO where fails says so, by their
// number in order. It returns what was called (seccomp_unotify(2)).
func withFaults(t *testing.T, fails func(n int) bool, do func()) (called []int32) {
	t.Helper()
	program := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}} // seccomp_data.nr
	for _, nr := range notified {
		program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: nr})
		if nr != unix.SYS_WRITE {
			program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
			continue
		}
		// The Go runtime writes to its eventfd, and package testing to a log: not to files that are open before.
		own := openFiles(t)
		program[len(program)-1].Jf = uint8(2*len(own) + 2)
		program = append(program, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}) // seccomp_data.args[0]
		for _, fd := range own {
			program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: fd},
				unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
		}
		program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	listener := make(chan int)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the filter ends with its thread
		var fd uintptr
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			of := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
			var e unix.Errno
			fd, _, e = unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
				uintptr(unsafe.Pointer(&of)))
			if e != 0 {
				err = e
			}
		}
		if err != nil {
			t.Errorf("seccomp: %v", err)
			close(listener)
			return
		}
		listener <- int(fd)
		do()
	}()
	at, ok := <-listener
	if !ok {
		t.FailNow()
	}
	defer unix.Close(at)
	for {
		wait := []unix.PollFd{{Fd: int32(at), Events: unix.POLLIN}}
		if _, err := unix.Poll(wait, 10); err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
		if wait[0].Revents&unix.POLLIN == 0 {
			select {
			case <-done:
				return called
			default:
				continue
			}
		}
		var n notification
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(at), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); e != 0 {
			continue // it was interrupted, and comes again
		}
		answer := response{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		if fails(len(called)) {
			answer = response{id: n.id, errno: -int32(unix.EIO)}
		}
		if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(at), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer))); e == 0 {
			called = append(called, n.nr)
		}
	}
}

// openFiles are this process's file descriptors.
func openFiles(t *testing.T) (fds []uint32) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil || len(open) > 100 { // a jump of BPF is of 255 instructions at most
		t.Fatal(len(open), err)
	}
	for _, name := range open {
		fd, err := strconv.ParseUint(name.Name(), 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, uint32(fd))
	}
	return fds
}

// TestEachSystemCallOfARewriteMayFail, alone or with all that follow: what Append then says is on the disk is in the file that has the
// journal's name, and nothing that was in force is lost.
func TestEachSystemCallOfARewriteMayFail(t *testing.T) {
	for name, onwards := range map[string]bool{"one": false, "all from one on": true} {
		renamed := false
		for n, more := 0, true; more; n++ {
			dir := t.TempDir() + "/s"
			j := open(t, dir, Options{Keep: 1})
			add(t, j, begin("kept", "/shared"))
			add(t, j, write(j, "kept", "/shared", "0-1", "1"), Record{Commit: &Commit{Txn: "kept"}})
			for i := range 100 {
				id := fmt.Sprint("t", i)
				if err := j.Append(false, begin(id, "/"+strings.Repeat("x", 1000)), closed(id)); err != nil {
					t.Fatal(err)
				}
			}
			var compacted error
			called := withFaults(t, func(at int) bool { return at == n || onwards && at > n }, func() { compacted = j.Compact() })
			more = n < len(called)
			renamed = renamed || slices.Contains(called, unix.SYS_RENAMEAT)
			if !more && compacted != nil {
				t.Fatalf("without a fault: %v", compacted)
			}
			appended := j.Append(true, begin("later", "/later"))
			where := fmt.Sprintf("%s, call %d of %v (Compact: %v; Append: %v)", name, n, called, compacted, appended)
			s, err := Load(dir)
			if err != nil || s.Damaged > 0 {
				t.Fatalf("%s: %v", where, err)
			}
			if _, there := s.Txn("later"); there != (appended == nil) {
				t.Errorf("%s: in the journal: %v", where, there)
			}
			if kept, there := s.Txn("kept"); !there || kept.Phase != InForce {
				t.Errorf("%s: what was in force is lost", where)
			}
			j.Close()
			add(t, open(t, dir, Options{}), begin("anew", "/anew"))
		}
		if !renamed {
			t.Error("no rewrite came to its rename")
		}
	}
}

// TestNothingIsAppendedToAFileWithoutAName: the folder was removed, or the file replaced, while the journal was open.
func TestNothingIsAppendedToAFileWithoutAName(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"removed":  os.RemoveAll,
		"replaced": func(dir string) error { return os.Rename(filepath.Join(dir, lockName), File(dir)) },
	} {
		dir := t.TempDir() + "/s"
		j := open(t, dir, Options{})
		add(t, j, begin("a", "/a"))
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if err := j.Append(true, begin("b", "/b")); err == nil || !strings.Contains(err.Error(), "removed or replaced") {
			t.Errorf("%s: %v", name, err)
		}
		if _, there := j.State().Txn("b"); there {
			t.Errorf("%s: the entry counts", name)
		}
	}
}
