package service

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// autobind binds a local socket to a name of the kernel's choice: an address
// that has the family and nothing else, which x/sys has no call for.
func autobind(fd int) error {
	family := uint16(unix.AF_UNIX)
	if _, _, errno := unix.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&family)), unsafe.Sizeof(family)); errno != 0 {
		return errno
	}
	return nil
}
