package identify

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// as does something with a user's and group's effective rights, on a thread of its own that ends with it. Only the
// effective ids change: with its real ones that user could signal us.
func as(uid, gid uint32, do func() error) error {
	if unix.Geteuid() == int(uid) && unix.Getegid() == int(gid) {
		return do()
	}
	done := make(chan error, 1)
	go onOwnThread(func() { done <- become(uid, gid, do) })
	return <-done
}

// onOwnThread does something on a thread that ends with it, and that is not the process's first: that one never ends,
// and /proc shows its rights as the process's.
func onOwnThread(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		other := make(chan struct{})
		go func() { // on another thread, as this one is taken
			defer close(other)
			onOwnThread(do)
		}()
		<-other
		return
	}
	// Never unlocked: so that the thread ends, and no other goroutine gets its rights. The runtime starts no thread from
	// a locked one.
	do()
}

const unchanged = ^uintptr(0)

func become(uid, gid uint32, do func() error) error {
	// Raw: the wrappers would change all threads. The group first, as the user may not.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, unchanged, uintptr(gid), unchanged); errno != 0 {
		return fmt.Errorf("take group %d: %w (run as root, or as its user)", gid, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(uid), unchanged); errno != 0 {
		return fmt.Errorf("take user %d: %w (run as root, or as its user)", uid, errno)
	}
	return do()
}
