package cgroup

import (
	"errors"
	"strings"
	"time"
)

// Frozen reports whether the freezer holds a cgroup, itself or by an ancestor, as docker pause does. Its threads then neither run
// nor want to. False where the kernel has no freezer here, or on v1 where the cgroup has no process that tells its freezer's path.
func (h *Host) Frozen(path string) (bool, error) {
	if v, _ := h.Version(CPU); v == V2 {
		text, err := h.Read(CPU, path, fileEvents)
		if errors.Is(err, ErrNoFile) {
			return false, nil // the root
		}
		return hasLine(text, "frozen 1"), err
	}
	if _, ok := h.Version(Freezer); !ok {
		return false, nil
	}
	pids, err := h.Members(path)
	if err != nil || len(pids) == 0 {
		return false, err
	}
	of, ok, err := h.Of(pids[0], Freezer)
	if err != nil || !ok {
		return false, err
	}
	text, err := h.Read(Freezer, of, fileFreezerState)
	if errors.Is(err, ErrNoFile) {
		return false, nil // the root
	}
	return hasLine(text, "FROZEN"), err
}

func hasLine(text, want string) bool {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == want {
			return true
		}
	}
	return false
}

// RTLimit is how long a cgroup's real-time threads may run in each period (tg_set_rt_bandwidth).
type RTLimit struct{ Runtime, Period time.Duration }

// ReadRTLimit reads the limit of real-time threads; false where there is none: on v2, without CONFIG_RT_GROUP_SCHED, or with a
// runtime of -1.
func ReadRTLimit(fsys FS, path string) (RTLimit, bool, error) {
	var l RTLimit
	for _, f := range []struct {
		name string
		to   *time.Duration
	}{{FileRTRuntime, &l.Runtime}, {fileRTPeriod, &l.Period}} {
		text, err := fsys.Read(CPU, path, f.name)
		if errors.Is(err, ErrNoFile) {
			return RTLimit{}, false, nil
		}
		if err != nil {
			return RTLimit{}, false, err
		}
		if *f.to, err = parseMicros(text, true); err != nil {
			return RTLimit{}, false, badFile(fsys, CPU, path, f.name, err)
		}
	}
	return l, l.Runtime >= 0, nil
}
