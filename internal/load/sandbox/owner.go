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
)

// owner is who made a home, as its name tells.
type owner struct {
	run     string
	pid     int
	started uint64 // clock ticks since boot, /proc/PID/stat field 22
	pidNS   uint64 // inode of the PID namespace
}

func (o owner) name(prefix string) string {
	return fmt.Sprintf("%s%s.%d.%d.%d", prefix, o.run, o.pid, o.started, o.pidNS)
}

// parseOwner reads what name wrote; anything else is no home.
func parseOwner(prefix, name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 {
		return owner{}, false
	}
	pid, err1 := strconv.ParseInt(parts[1], 10, 32)
	started, err2 := strconv.ParseUint(parts[2], 10, 64)
	ns, err3 := strconv.ParseUint(parts[3], 10, 64)
	o := owner{parts[0], int(pid), started, ns}
	return o, errors.Join(err1, err2, err3) == nil && pid > 0 && o.run != "" && o.name(prefix) == name
}

// ourselves is the owner of what this process makes.
func ourselves(procDir string) (owner, error) {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	o := owner{run: hex.EncodeToString(random[:]), pid: os.Getpid()}
	var ok bool
	if o.started, ok = startTime(procDir, o.pid); !ok {
		return o, fmt.Errorf("cannot read %s/%d/stat, without which a leftover could not be told from a run: mount /proc", procDir, o.pid)
	}
	var st unix.Stat_t
	if err := unix.Stat(filepath.Join(procDir, "self/ns/pid"), &st); err != nil {
		return o, fmt.Errorf("%s/self/ns/pid: %w", procDir, err)
	}
	o.pidNS = st.Ino
	return o, nil
}

// gone tells whether the owner runs no more, as far as one of that namespace can
// tell.
func (o owner) gone(procDir string, ourNS uint64) bool {
	if o.pidNS != ourNS {
		return false
	}
	started, ok := startTime(procDir, o.pid)
	return !ok || started != o.started
}

// startTime is when a process started; false: there is none of that PID. The
// name, field 2, may hold anything: what counts begins behind the last ")".
func startTime(procDir string, pid int) (uint64, bool) {
	text, err := os.ReadFile(filepath.Join(procDir, strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(fields[19], 10, 64)
	return ticks, err == nil
}
