package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
)

// owner is the process that made a sandbox, as its name tells.
type owner struct {
	run     string
	pid     int
	started uint64 // clock ticks since boot, /proc/PID/stat field 22
	pidNS   uint64 // inode of the PID namespace
}

func (o owner) name(prefix string) string {
	return fmt.Sprintf("%s%s.%d.%d.%d", prefix, o.run, o.pid, o.started, o.pidNS)
}

// parseOwner reads what name wrote. It returns false for any other name.
func parseOwner(prefix, name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 || !validRun(parts[0]) {
		return owner{}, false
	}
	pid, err1 := strconv.ParseInt(parts[1], 10, 32)
	started, err2 := strconv.ParseUint(parts[2], 10, 64)
	ns, err3 := strconv.ParseUint(parts[3], 10, 64)
	o := owner{parts[0], int(pid), started, ns}
	return o, errors.Join(err1, err2, err3) == nil && pid > 0 && o.name(prefix) == name
}

// ourselves returns this process as an owner; run "" becomes a random one.
func ourselves(proc, run string) (owner, error) {
	if run == "" {
		var random [4]byte
		_, _ = rand.Read(random[:]) // never fails (crypto/rand)
		run = hex.EncodeToString(random[:])
	}
	o := owner{run: run, pid: os.Getpid()}
	if !validRun(run) {
		return o, fmt.Errorf("run %.60q: give up to 32 of a-z and 0-9", run)
	}
	var ok bool
	if o.started, ok = startTime(proc, o.pid); !ok {
		return o, fmt.Errorf("cannot read %s/%d/stat, without which a leftover could not be told from a run: mount /proc", proc, o.pid)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(proc, "self/ns/pid"), &st); err != nil {
		return o, fmt.Errorf("%s/self/ns/pid: %w", proc, err)
	}
	o.pidNS = st.Ino
	return o, nil
}

// gone reports whether the owner has ended. The owner of another PID namespace
// cannot be looked up and counts as running.
func (o owner) gone(proc string, ourNS uint64) bool {
	if o.pidNS != ourNS {
		return false
	}
	started, ok := startTime(proc, o.pid)
	return !ok || started != o.started
}

// startTime returns the time at which a process started, in clock ticks since boot;
// false: no process has that PID.
func startTime(proc string, pid int) (uint64, bool) {
	text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	ticks, err := procfs.StartTime(string(text))
	return ticks, err == nil
}
