package rebalance

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/unthrottle/unthrottle/internal/cure/remedy"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/txn"
	"github.com/unthrottle/unthrottle/internal/txn/apply"
)

// maxThreads bounds how many threads are looked at for one container.
const maxThreads = 20_000

// Immovable tells, by the path of the container, who must not be moved because of
// its threads: some chose CPUs for themselves, or there are too many to look.
func Immovable(fsys cgroup.FS, proc apply.Proc, held []txn.InForce) map[string]string {
	stays := map[string]string{}
	for _, h := range held {
		read, err := remedy.Decode(h, "")
		if err != nil {
			stays[h.Target] = err.Error()
			continue
		}
		if read.CPUSet == "" {
			continue
		}
		switch own, looked, err := ownAffinity(fsys, proc, read.CPUSet); {
		case err != nil:
			stays[h.Target] = fmt.Sprintf("where its threads may run cannot be told: %v", err)
		case own > 0:
			stays[h.Target] = fmt.Sprintf("%d of its %d threads chose CPUs for themselves", own, looked)
		}
	}
	return stays
}

// ownAffinity counts the threads at and below a cpuset that may use fewer CPUs
// than the cpuset has.
func ownAffinity(fsys cgroup.FS, proc apply.Proc, set string) (own, looked int, err error) {
	if proc == nil {
		return 0, 0, errors.New("there is no /proc")
	}
	err = cgroup.Walk(fsys, cgroup.CPUSet, set, func(path string) error {
		_, effective, err := cgroup.CPUs(fsys, path)
		if err != nil {
			return gone(err)
		}
		tids, err := fsys.Threads(cgroup.CPUSet, path)
		if err != nil {
			return gone(err)
		}
		for _, tid := range tids {
			if looked++; looked > maxThreads {
				return fmt.Errorf("it has more than %d threads", maxThreads)
			}
			if tid == 0 {
				return errors.New("some are outside our PID namespace")
			}
			allowed, err := proc.Allowed(tid)
			if err != nil {
				continue // it ended
			}
			if !allowed.Equals(effective) && allowed.IsSubsetOf(effective) {
				own++
			}
		}
		return nil
	})
	return own, looked, err
}

// gone passes over what vanished while it was looked at.
func gone(err error) error {
	if errors.Is(err, cgroup.ErrNoCgroup) {
		return fs.SkipDir
	}
	return err
}
