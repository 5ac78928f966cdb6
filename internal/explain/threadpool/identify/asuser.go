package identify

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// asUser runs do with a user's and group's effective rights, on a thread of its own that ends with it. It changes
// only the effective ids: with our real ids that user could signal us.
func asUser(uid, gid uint32, do func() error) error {
	if unix.Geteuid() == int(uid) && unix.Getegid() == int(gid) {
		return do()
	}
	done := make(chan error, 1)
	go onOwnThread(func() { done <- become(uid, gid, do) })
	return <-done
}

// onOwnThread runs do on a thread that ends with it, and that is not the process's first. The first one never
// ends, and /proc shows its rights as the process's.
func onOwnThread(do func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		defer runtime.UnlockOSThread()
		other := make(chan struct{})
		go func() { // the current thread is the first one
			defer close(other)
			onOwnThread(do)
		}()
		<-other
		return
	}
	// No unlock, so that the thread ends and no other goroutine gets its rights. The runtime starts no thread
	// from a locked one.
	do()
}

const unchanged = ^uintptr(0)

func become(uid, gid uint32, do func() error) error {
	// Raw, because the wrappers would change all threads. The group comes first, because the user may not
	// change it.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, unchanged, uintptr(gid), unchanged); errno != 0 {
		return fmt.Errorf("take group %d: %w (run as root, or as its user)", gid, errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(uid), unchanged); errno != 0 {
		return fmt.Errorf("take user %d: %w (run as root, or as its user)", uid, errno)
	}
	return do()
}
