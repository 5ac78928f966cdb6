package sampler

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/sampled"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// Bounds on what a target makes.
const (
	// MaxThreads is how many threads are followed.
	MaxThreads   = 1024
	maxProcesses = 128
)

// threads are the threads that are followed, with open files.
type threads struct {
	proc    string
	pids    []int
	all     []*followed
	known   map[[2]int]*followed
	round   int
	rename  bool              // this listing reads the names of known threads again
	names   map[uint32]string // of processes
	left    int               // out of the last listing
	refused int               // processes whose threads could not be listed
	buffer  [256]byte
}

type followed struct {
	pid, tid int
	fd       int
	comm     string
	round    int // of the listing that has it
}

func newThreads(proc string, pids []int) *threads {
	return &threads{proc: proc, pids: pids, known: map[[2]int]*followed{}, names: map[uint32]string{}}
}

// list finds the threads that are there, and with rename what those that are known are called now.
func (t *threads) list(rename bool) {
	t.round++
	t.rename = rename
	t.left, t.refused = 0, 0
	for _, pid := range t.pids {
		dir, err := os.Open(filepath.Join(t.proc, strconv.Itoa(pid), "task"))
		if err == nil {
			var names []string
			names, err = dir.Readdirnames(MaxThreads * 2)
			dir.Close()
			for _, name := range names {
				t.meet(pid, name)
			}
		}
		if err != nil && len(t.all) == 0 {
			t.refused++
		}
	}
	kept := t.all[:0]
	for _, f := range t.all {
		if f.round == t.round {
			kept = append(kept, f)
			continue
		}
		t.forget(f)
	}
	t.all = kept
}

// meet takes a thread that was listed.
func (t *threads) meet(pid int, name string) {
	tid, err := strconv.Atoi(name)
	if err != nil {
		return
	}
	f, ok := t.known[[2]int{pid, tid}]
	if !ok {
		if len(t.all) >= MaxThreads {
			t.left++
			return
		}
		path := filepath.Join(t.proc, strconv.Itoa(pid), "task", name)
		fd, err := unix.Open(path+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			if err != unix.ENOENT && err != unix.ESRCH {
				t.left++
			}
			return
		}
		f = &followed{pid: pid, tid: tid, fd: fd}
		t.known[[2]int{pid, tid}] = f
		t.all = append(t.all, f)
	}
	f.round = t.round
	if ok && !t.rename {
		return
	}
	if comm, err := os.ReadFile(filepath.Join(t.proc, strconv.Itoa(pid), "task", name, "comm")); err == nil {
		f.comm = strings.TrimSuffix(string(comm), "\n")
		if pid == tid {
			t.names[uint32(pid)] = f.comm
		}
	}
}

func (t *threads) forget(f *followed) {
	_ = unix.Close(f.fd)
	delete(t.known, [2]int{f.pid, f.tid})
}

// read appends what each thread that has not ended did so far.
func (t *threads) read(to []sampled.Thread) []sampled.Thread {
	for _, f := range t.all {
		n, err := unix.Pread(f.fd, t.buffer[:], 0)
		if err != nil || n == 0 {
			continue
		}
		s, err := procfs.ParseSchedstat(t.buffer[:n])
		if err != nil {
			continue
		}
		to = append(to, sampled.Thread{PID: uint32(f.pid), TID: uint32(f.tid), Comm: f.comm, Ran: s.Ran, Waited: s.Waited, Runs: s.Runs})
	}
	return to
}

func (t *threads) close() {
	for _, f := range t.all {
		_ = unix.Close(f.fd)
	}
	t.all = nil
}
