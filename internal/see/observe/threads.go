package observe

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// threadUse sums the CPU time of a cgroup's threads, on hosts with separate v1 hierarchies. It serves where the cpuacct
// cgroup holds other tasks too, or where none exists: systemd units on v1, cgroups made by hand.
type threadUse struct {
	at    time.Time
	last  map[int]time.Duration // by thread, as read at that time
	total time.Duration
}

// maxThreadsPerRound bounds how many threads one sample reads in all; it does not measure the remaining containers.
const maxThreadsPerRound = 4096

var (
	errThreadsHidden  = errors.New("some of its threads are outside our PID namespace")
	errAllHidden      = errors.New("cgroup v1 hides threads of other PID namespaces; run in the host's (hostPID: true)")
	errTooManyThreads = errors.New("too many threads to read one by one")
)

// addThreads reads the CPU time of all threads of a cgroup and its descendants and adds up their gains. A thread that
// is new counts with all its time if that fits between the two readings, because it most likely started within them.
// The last moments of a thread that ended are lost, so the sum is a lower bound. Of a level that rests it reads none.
func (s *Sampler) addThreads(l *level, rests bool) (time.Duration, error) {
	if s.hidden {
		return 0, errAllHidden
	}
	now := s.opt.Now()
	use := l.threads
	if use != nil && rests {
		use.at = now
		return use.total, nil
	}
	if use == nil {
		use = &threadUse{at: now}
	}
	first := use.last == nil
	read := make(map[int]time.Duration, len(use.last))
	since := now.Sub(use.at)
	err := s.host.Walk(l.path, func(path string) error {
		tids, err := s.host.Threads(cgroup.CPU, path)
		if errors.Is(err, cgroup.ErrNoCgroup) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, tid := range tids {
			if tid <= 0 {
				return errThreadsHidden
			}
			if s.threadsLeft--; s.threadsLeft < 0 {
				return errTooManyThreads
			}
			ran, err := s.threadTime(tid)
			if err != nil {
				continue // it has ended
			}
			read[tid] = ran
			before, known := use.last[tid]
			switch {
			case known && ran >= before:
				use.total += ran - before
			case !first && ran <= since:
				use.total += ran
			}
		}
		return nil
	})
	if err != nil {
		l.threads = nil
		return 0, err
	}
	use.at, use.last, l.threads = now, read, use
	return use.total, nil
}

// threadTime reads the CPU time of one thread: the first field of schedstat, in ns (fs/proc/base.c,
// proc_pid_schedstat).
func (s *Sampler) threadTime(tid int) (time.Duration, error) {
	var h handle
	defer s.files.close(&h)
	text, err := s.files.read(&h, s.opt.Proc+"/"+strconv.Itoa(tid), "schedstat")
	if err != nil {
		return 0, err
	}
	field, _, _ := bytes.Cut(text, []byte{' '})
	return cgroup.ParseTime(field, time.Nanosecond)
}
