package cgroup

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// NewError completes an Error: it looks up why the kernel refused, as far as it can. The look-ups only read.
func NewError(fsys FS, c Controller, e Error) *Error {
	if e.Why == "" {
		e.Why = why(fsys, c, &e)
	}
	return &e
}

// why returns the cause in words, "" where the errno says everything.
func why(fsys FS, c Controller, e *Error) string {
	switch {
	case errors.Is(e.Kind, ErrNoController):
		return fmt.Sprintf("the %s controller is not mounted here", c)
	case errors.Is(e.Kind, ErrEmptyValue):
		return "the kernel would ignore an empty value"
	case errors.Is(e.Kind, ErrBadPID):
		return "0 means a process outside our PID namespace"
	case errors.Is(e.Kind, ErrNoCgroup):
		return "the cgroup does not exist"
	case errors.Is(e.Kind, ErrNoFile):
		return whyNoFile(fsys, c, e)
	case errors.Is(e.Errno, unix.EROFS):
		return "mounted read-only; remount it writable or run outside this container"
	case errors.Is(e.Errno, unix.EPERM):
		return "not permitted; this needs root, or a cgroup delegated to this user"
	case errors.Is(e.Errno, unix.ERANGE) && (e.File == FileCPUs || e.File == FileMems):
		return "a number beyond the CPUs or memory nodes of this machine"
	case errors.Is(e.Errno, unix.ERANGE):
		return "the number is out of range"
	}
	v, _ := fsys.Version(c)
	switch e.Op {
	case OpRead:
		if errors.Is(e.Errno, unix.EOPNOTSUPP) && e.File == FileProcs {
			kind, _ := ReadType(fsys, c, e.Path)
			return fmt.Sprintf("its cgroup.type is %q: only cgroup.threads can be read", kind)
		}
	case OpWrite:
		return whyWrite(fsys, c, v, e)
	case OpAttach:
		return whyAttach(fsys, c, v, e)
	case OpRemove:
		if errors.Is(e.Errno, unix.EBUSY) {
			return "it still holds processes or child cgroups"
		}
	case OpMake:
		switch {
		case errors.Is(e.Errno, unix.EEXIST):
			return "a cgroup or file of this name exists"
		case errors.Is(e.Errno, unix.EAGAIN):
			return "the limit cgroup.max.descendants or cgroup.max.depth of an ancestor is reached"
		case errors.Is(e.Errno, unix.EINVAL):
			return "the kernel accepts no newline in a cgroup's name"
		}
	}
	return accessDenied(e)
}

func accessDenied(e *Error) string {
	if errors.Is(e.Errno, unix.EACCES) {
		return "no permission; this needs root, or a cgroup delegated to this user"
	}
	return ""
}

func whyNoFile(fsys FS, c Controller, e *Error) string {
	switch v, _ := fsys.Version(c); {
	case e.Path == "/":
		return "the root cgroup has no such file"
	case v != V2, strings.HasPrefix(e.File, "cgroup."):
		return "this kernel has no such file"
	}
	on, err := enabledControllers(fsys, e.Path)
	for _, have := range on {
		if have == c {
			return "this kernel has no such file"
		}
	}
	if err != nil {
		return ""
	}
	return fmt.Sprintf("the %s controller is not enabled for this cgroup: write +%s to %s of %s",
		c, c, FileSubtreeControl, show(Parent(e.Path), 4096))
}

func whyAttach(fsys FS, c Controller, v Version, e *Error) string {
	switch {
	case errors.Is(e.Errno, unix.ESRCH):
		return "the process has ended"
	case errors.Is(e.Errno, unix.ENOSPC):
		return "its cpuset.cpus or cpuset.mems is empty: set both first"
	case errors.Is(e.Errno, unix.EBUSY):
		return "it enables controllers for children (cgroup.subtree_control), so it may hold no processes itself"
	case errors.Is(e.Errno, unix.EOPNOTSUPP):
		return whyThreaded(fsys, c, e.Path)
	case errors.Is(e.Errno, unix.EINVAL):
		return "a kernel thread bound to its CPU, or a real-time task without a share in this cgroup"
	case errors.Is(e.Errno, unix.EACCES) && v == V2:
		return "no write permission on cgroup.procs of the common ancestor; this needs root, or delegation"
	}
	return accessDenied(e)
}

func whyThreaded(fsys FS, c Controller, path string) string {
	kind, err := ReadType(fsys, c, path)
	if err != nil || kind == "" {
		return "a threaded cgroup prevents it"
	}
	return fmt.Sprintf("its cgroup.type is %q: only domain cgroups take whole processes", kind)
}

func whyWrite(fsys FS, c Controller, v Version, e *Error) string {
	why := ""
	switch e.File {
	case FileCPUs, FileMems, FileExclusive, FileExclusiveV1:
		why = whyCPUSet(fsys, v, e)
	case fileMax, fileMaxBurst, fileQuota, filePeriod, fileBurst:
		if errors.Is(e.Errno, unix.EINVAL) {
			why = whyLimit(fsys, v, e)
		}
	case fileShares, fileWeight:
		if errors.Is(e.Errno, unix.EINVAL) {
			why = "the kernel does not accept this weight here, or cpu.idle is set"
		}
	case FileSubtreeControl:
		why = whySubtree(fsys, e)
	}
	if why == "" && errors.Is(e.Errno, unix.EOPNOTSUPP) {
		why = whyThreaded(fsys, c, e.Path)
	}
	if why == "" {
		why = accessDenied(e)
	}
	return why
}

func whySubtree(fsys FS, e *Error) string {
	switch {
	case errors.Is(e.Errno, unix.EBUSY):
		return "it holds processes itself, or a child still uses the controller (v2: processes live in leaves)"
	case errors.Is(e.Errno, unix.ENOENT):
		on, _ := enabledControllers(fsys, e.Path)
		return fmt.Sprintf("not among its own controllers %v", on)
	case errors.Is(e.Errno, unix.EOPNOTSUPP):
		return "not possible in a threaded cgroup, or one whose processes are in threaded children"
	}
	return ""
}

func whyCPUSet(fsys FS, v Version, e *Error) string {
	switch {
	case errors.Is(e.Errno, unix.ENOSPC) && v == V2:
		return "this kernel does not clear the list while tasks are inside; the parent's list has the same effect"
	case errors.Is(e.Errno, unix.ENOSPC):
		return "it would leave the tasks inside without a CPU or memory node"
	case errors.Is(e.Errno, unix.EACCES) && v == V1:
		if e.Path == "/" {
			return "the root cpuset cannot be changed"
		}
		parent, err := fsys.Read(CPUSet, Parent(e.Path), e.File)
		switch {
		case err != nil:
			return "outside the parent's"
		case e.File == FileExclusiveV1:
			return "the parent is not exclusive itself"
		}
		return "outside the parent's " + show(parent, 200)
	case errors.Is(e.Errno, unix.EBUSY) && v == V1:
		if child := uncovered(fsys, e); child != "" {
			return "a child needs more: " + child
		}
		return "a child needs more, or deadline tasks need the CPUs"
	case errors.Is(e.Errno, unix.EBUSY):
		return "deadline tasks need the CPUs"
	case errors.Is(e.Errno, unix.EINVAL):
		if _, err := parseCPUs(e.Value); err != nil && e.File != FileExclusiveV1 {
			return "not a list of CPUs"
		}
		if e.File == FileMems {
			return "a memory node that does not exist, or that an exclusive sibling holds"
		}
		return "a CPU that does not exist, or that an exclusive sibling holds"
	}
	return ""
}

// uncovered names a child whose list is not within the wanted one.
func uncovered(fsys FS, e *Error) string {
	want, err := parseCPUs(e.Value)
	if err != nil {
		return ""
	}
	children, _ := fsys.Children(CPUSet, e.Path)
	for i, child := range children {
		if i == maxWhyGroups {
			break
		}
		text, err := fsys.Read(CPUSet, child, e.File)
		if err != nil {
			continue
		}
		if set, err := parseCPUs(text); err == nil && !set.IsSubsetOf(want) {
			return show(child, 4096) + " has " + show(text, 200)
		}
	}
	return ""
}
