// Package lockdown tells where the kernel lets no BPF program read its memory: in lockdown mode confidentiality.
package lockdown

import (
	"io/fs"
	"strings"
)

// Way is the way out.
const Way = "the kernel is in lockdown mode confidentiality, where no program may read its memory: lockdown=integrity will do"

// HidesMemory reports what the kernel says of its mode, in /sys/kernel; false where that cannot be read, as in most containers.
func HidesMemory(kernel fs.FS) bool {
	modes, err := fs.ReadFile(kernel, "security/lockdown")
	return err == nil && strings.Contains(string(modes), "[confidentiality]")
}

// Refused reports whether that is why the kernel refused to load a tracing program or a scheduler: to these it offers
// bpf_probe_read and its kin in any other mode (bpf_base_func_proto in kernel/bpf/helpers.c).
func Refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cannot use helper bpf_probe_read")
}
