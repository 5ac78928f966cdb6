package sampler

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/roles"
	"github.com/unthrottle/unthrottle/internal/explain/sampled"
	"github.com/unthrottle/unthrottle/internal/explain/threadpool/identify"
	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// Bounds on what a target makes.
const (
	// MaxThreads is how many threads are followed.
	MaxThreads   = 1024
	maxProcesses = 128
	// maxListed is how many threads of a process are listed: of those the first listing follows the ones with most CPU time so far.
	maxListed = 1 << 14
	// maxEnded bounds the threads that ended and are remembered.
	maxEnded = 4096
)

// threads are the threads that are followed, with open files.
type threads struct {
	proc      string
	pids      []int
	all       []*followed
	ended     []roles.Seen
	known     map[[2]int]*followed
	round     int
	rename    bool // this listing reads the names of known threads again
	processes map[uint32]roles.Process
	before    map[uint32]bool // processes of the first listing; nil before it
	left      int             // out of the last listing
	refused   int             // processes whose threads could not be listed
	buffer    [256]byte
}

type followed struct {
	pid, tid int
	fd       int
	comm     string
	round    int // of the listing that has it
	read     procfs.Schedstat
	// first and counted are what it had done when its sleeps were counted first and last.
	first, counted work
}

// work is what a thread had done at one moment. slept counts the times that it gave up its CPU by itself.
type work struct {
	ran         time.Duration
	slept, runs uint64
	known       bool
}

func newThreads(proc string, pids []int) *threads {
	return &threads{proc: proc, pids: pids, known: map[[2]int]*followed{}, processes: map[uint32]roles.Process{}}
}

// list finds the threads that are there, and with rename what those that are known are called now.
func (t *threads) list(rename bool) {
	t.round++
	t.rename = rename
	t.left, t.refused = 0, 0
	var there []listed
	for _, pid := range t.pids {
		dir, err := os.Open(filepath.Join(t.proc, strconv.Itoa(pid), "task"))
		if err == nil {
			var names []string
			names, err = dir.Readdirnames(maxListed)
			dir.Close()
			for _, name := range names {
				there = append(there, listed{pid: pid, name: name})
			}
		}
		if err != nil && len(t.all) == 0 && len(there) == 0 {
			t.refused++
		}
	}
	if t.before == nil && len(there) > MaxThreads {
		t.busiestFirst(there)
	}
	for _, l := range there {
		t.meet(l.pid, l.name)
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
	if t.before == nil {
		t.before = map[uint32]bool{}
		for _, f := range t.all {
			t.before[uint32(f.pid)] = true
		}
	}
}

// listed is a thread of a listing. ran is its CPU time, where that was asked.
type listed struct {
	pid  int
	name string
	ran  time.Duration
}

// busiestFirst sorts threads of which not all can be followed. Those that have used no CPU time yet tell nothing.
func (t *threads) busiestFirst(there []listed) {
	for i := range there[:min(len(there), maxListed)] {
		l := &there[i]
		fd, err := unix.Open(t.task(l.pid, l.name)+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		s, _ := t.schedstat(fd)
		l.ran = s.Ran
		_ = unix.Close(fd)
	}
	slices.SortStableFunc(there, func(x, y listed) int { return cmp.Compare(y.ran, x.ran) })
}

// task is the folder of a thread.
func (t *threads) task(pid int, name string) string {
	return filepath.Join(t.proc, strconv.Itoa(pid), "task", name)
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
		fd, err := unix.Open(t.task(pid, name)+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			if err != unix.ENOENT && err != unix.ESRCH {
				t.left++
			}
			return
		}
		f = &followed{pid: pid, tid: tid, fd: fd}
		if t.before == nil || t.before[uint32(pid)] {
			f.first = t.work(f)
		}
		t.known[[2]int{pid, tid}] = f
		t.all = append(t.all, f)
	}
	f.round = t.round
	if ok && !t.rename {
		return
	}
	if comm, err := os.ReadFile(t.task(pid, name) + "/comm"); err == nil {
		f.comm = strings.TrimSuffix(string(comm), "\n")
		if pid == tid {
			_, argv, _ := identify.Title(pid) // what cannot be read has no title
			t.processes[uint32(pid)] = roles.Process{Name: f.comm, Argv: argv}
		}
	}
}

// schedstat reads a thread's open file; false: it has ended.
func (t *threads) schedstat(fd int) (s procfs.Schedstat, ok bool) {
	n, err := unix.Pread(fd, t.buffer[:], 0)
	if err != nil || n == 0 {
		return s, false
	}
	s, err = procfs.ParseSchedstat(t.buffer[:n])
	return s, err == nil
}

// work reads what a thread has done.
func (t *threads) work(f *followed) (w work) {
	text, err := os.ReadFile(t.task(f.pid, strconv.Itoa(f.tid)) + "/status")
	if err != nil {
		return w
	}
	s, read := t.schedstat(f.fd)
	slept, ok := procfs.StatusField(string(text), "voluntary_ctxt_switches")
	if read && ok {
		w.slept, err = strconv.ParseUint(strings.TrimSpace(slept), 10, 64)
		w.ran, w.runs, w.known = s.Ran, s.Runs, err == nil
	}
	return w
}

// count notes what each thread has done by now.
func (t *threads) count() {
	for _, f := range t.all {
		if f.read.Ran > f.counted.ran { // else it did nothing since
			if now := t.work(f); now.known {
				f.counted = now
			}
		}
	}
}

// seen is what a thread did while it was followed. How often it slept after it was counted last is not known: then how often it got
// a CPU stands for it, which is no less.
func (t *threads) seen(f *followed) roles.Seen {
	s := roles.Seen{PID: uint32(f.pid), TID: uint32(f.tid), Comm: f.comm, Born: !t.before[uint32(f.pid)]}
	if f.counted.known && f.counted.ran > f.first.ran {
		s.CPU, s.Runs = f.counted.ran-f.first.ran, int(f.counted.slept-f.first.slept)
	} else if f.read.Ran > f.first.ran {
		s.CPU, s.Runs = f.read.Ran-f.first.ran, int(f.read.Runs-f.first.runs)
	}
	return s
}

// done are all threads that were followed.
func (t *threads) done() []roles.Seen {
	all := slices.Clone(t.ended)
	for _, f := range t.all {
		all = append(all, t.seen(f))
	}
	return all
}

func (t *threads) forget(f *followed) {
	if len(t.ended) < maxEnded {
		s := t.seen(f)
		s.Ended = true
		t.ended = append(t.ended, s)
	}
	_ = unix.Close(f.fd)
	delete(t.known, [2]int{f.pid, f.tid})
}

// read appends the threads that did something since the last reading, or with whole all that have not ended. there is how many there are.
func (t *threads) read(to []sampled.Thread, whole bool) (did []sampled.Thread, there int) {
	for _, f := range t.all {
		s, ok := t.schedstat(f.fd)
		if !ok {
			continue
		}
		there++
		if s == f.read && !whole {
			continue
		}
		f.read = s
		to = append(to, sampled.Thread{PID: uint32(f.pid), TID: uint32(f.tid), Comm: f.comm, Ran: s.Ran, Waited: s.Waited, Runs: s.Runs})
	}
	return to, there
}

func (t *threads) close() {
	for _, f := range t.all {
		_ = unix.Close(f.fd)
	}
	t.all = nil
}
