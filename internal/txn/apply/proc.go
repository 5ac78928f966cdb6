package apply

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/internal/txn/journal"
)

// maxProcBytes bounds one file of /proc/PID.
const maxProcBytes = 64 << 10

// pfKthread is PF_KTHREAD of include/linux/sched.h.
const pfKthread = 0x00200000

// procFS is Proc on a real /proc.
type procFS string

// NewProc reads processes from dir, which is "/proc" or a tree like it.
func NewProc(dir string) Proc { return procFS(dir) }

func (p procFS) read(pid int, file string) (string, error) {
	f, err := os.Open(filepath.Join(string(p), strconv.Itoa(pid), file))
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProcBytes))
	return string(data), err
}

// Allowed implements Proc.
func (p procFS) Allowed(tid int) (cpuset.CPUSet, error) {
	text, err := p.read(tid, "status")
	if err != nil {
		return cpuset.CPUSet{}, err
	}
	return parseAllowed(text)
}

// KernelThread implements Proc.
func (p procFS) KernelThread(pid int) (bool, error) {
	text, err := p.read(pid, "stat")
	if err != nil {
		return false, err
	}
	flags, err := procfs.Flags(text)
	return flags&pfKthread != 0, err
}

// initialPIDNamespace is PROC_PID_INIT_INO of include/linux/proc_ns.h, the same on every machine.
const initialPIDNamespace = 0xEFFFFFFC

// AllProcesses implements Proc.
func (p procFS) AllProcesses() (bool, error) {
	namespace, err := p.namespace()
	// A kernel without CONFIG_PID_NS has one namespace only.
	return err == nil && (namespace == 0 || namespace == initialPIDNamespace), err
}

// Threads implements Proc.
func (p procFS) Threads(pid int) ([]int, error) {
	d, err := os.Open(filepath.Join(string(p), strconv.Itoa(pid), "task"))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxThreads)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var tids []int
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// Self implements Proc.
func (p procFS) Self() (journal.Process, error) {
	pid := os.Getpid()
	started, err := p.started(pid)
	if err != nil {
		return journal.Process{}, err
	}
	namespace, err := p.namespace()
	return journal.Process{PID: pid, Started: started, Namespace: namespace}, err
}

// Runs implements Proc. A process that ended and was not waited for does not run.
func (p procFS) Runs(process journal.Process) (bool, error) {
	namespace, err := p.namespace()
	if err != nil {
		return false, err
	}
	if namespace != process.Namespace {
		return false, fmt.Errorf("process %d is of another PID namespace", process.PID)
	}
	started, err := p.started(process.PID)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	return started == process.Started, err
}

// started is the start time of a process; os.ErrNotExist: it ended.
func (p procFS) started(pid int) (uint64, error) {
	text, err := p.read(pid, "stat")
	if err != nil {
		return 0, err
	}
	ended, err := procfs.Ended(text)
	if err != nil {
		return 0, err
	}
	if tids, err := p.Threads(pid); ended && err == nil && len(tids) <= 1 {
		return 0, os.ErrNotExist
	}
	return procfs.StartTime(text)
}

// namespace is the inode of our PID namespace; 0: the kernel has no namespaces.
func (p procFS) namespace() (uint64, error) {
	var st unix.Stat_t
	file := filepath.Join(string(p), "self/ns/pid")
	err := unix.Stat(file, &st)
	if errors.Is(err, unix.ENOENT) && unix.Stat(filepath.Join(string(p), "self/stat"), &st) == nil {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("%s: which PID namespace this is cannot be told: %w", file, err)
	}
	return st.Ino, nil
}

// BootID is the running kernel's: procDir/sys/kernel/random/boot_id.
func BootID(procDir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(procDir, "sys/kernel/random/boot_id"))
	if err != nil {
		return "", fmt.Errorf("the boot id: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}
