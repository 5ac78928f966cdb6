package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
)

// namePrefix begins the name of every cgroup that a demo makes.
const namePrefix = "unthrottle-demo-"

// owner is who made a demo's cgroup, as its name tells. A PID alone would not
// do: it is given again, and means another process in another PID namespace.
type owner struct {
	runID     string
	pid       int
	startTime uint64 // clock ticks since boot, /proc/PID/stat field 22
	pidNS     uint64 // inode of the PID namespace
}

func (o owner) name() string {
	return fmt.Sprintf("%s%s.%d.%d.%d", namePrefix, o.runID, o.pid, o.startTime, o.pidNS)
}

// parseName reads what name wrote; anything else is not a demo's.
func parseName(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, namePrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 || !validRunID(parts[0]) {
		return owner{}, false
	}
	pid, err1 := strconv.ParseInt(parts[1], 10, 32)
	start, err2 := strconv.ParseUint(parts[2], 10, 64)
	ns, err3 := strconv.ParseUint(parts[3], 10, 64)
	o := owner{parts[0], int(pid), start, ns}
	return o, errors.Join(err1, err2, err3) == nil && pid > 0 && o.name() == name
}

// ourselves is the owner of what this process makes.
func ourselves(procDir, runID string) (owner, error) {
	o := owner{runID: runID, pid: os.Getpid()}
	var ok bool
	if o.startTime, ok = startTime(procDir, o.pid); !ok {
		return o, fmt.Errorf("demo: cannot read %s/%d/stat, without which a leftover could not be told from a run", procDir, o.pid)
	}
	var err error
	o.pidNS, err = pidNamespace(procDir)
	return o, err
}

func pidNamespace(procDir string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(procDir, "self/ns/pid"), &st); err != nil {
		return 0, fmt.Errorf("demo: %s/self/ns/pid: %w", procDir, err)
	}
	return st.Ino, nil
}

// startTime is when a process started; false: there is none of that PID.
func startTime(procDir string, pid int) (uint64, bool) {
	text, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	return parseStartTime(string(text))
}

// parseStartTime reads field 22 of /proc/PID/stat. The name, field 2, may hold
// anything, a ")" too: what counts begins behind the last one.
func parseStartTime(stat string) (uint64, bool) {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, false
	}
	fields := strings.Fields(stat[i+1:])
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}

// alive tells whether the owner still runs. One of another PID namespace cannot
// be looked up and counts as alive.
func (o owner) alive(procDir string, ourNS uint64) bool {
	if o.pidNS != ourNS {
		return true
	}
	started, ok := startTime(procDir, o.pid)
	return ok && started == o.startTime
}

// leftoverPatience is how long a leftover may take to become empty: children
// of a killed run end by themselves when its pipe closes.
const leftoverPatience = 3 * time.Second

// removeLeftovers removes what killed runs left behind below the scope. It
// returns how many runs that were, and a note on each that could not be
// removed; nothing is ever killed for it.
func removeLeftovers(fsys cgroup.FS, s site, procDir string, ourNS uint64) (removed int, notes []string) {
	runs := map[string]bool{}
	notes = []string{}
	for _, c := range s.hierarchies {
		children, err := fsys.Children(c, in(s.scope, c))
		if err != nil {
			notes = append(notes, "leftovers not looked for: "+err.Error())
			continue
		}
		for _, path := range children {
			o, ours := parseName(cgroup.Base(path))
			if !ours || o.alive(procDir, ourNS) {
				continue
			}
			if err := removeWhenEmpty(fsys, c, path, leftoverPatience); err != nil {
				notes = append(notes, "a leftover of a killed run stays: "+err.Error())
				continue
			}
			runs[o.runID] = true
		}
	}
	return len(runs), notes
}
