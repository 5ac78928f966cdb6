package identify

import (
	"fmt"
	"strconv"
	"strings"
)

// status has the needed parts of /proc/PID/status.
type status struct {
	uid, gid uint32 // effective
	caught   uint64 // signals with a handler, signal 1 at bit 0
	inner    uint32 // the process's number in its own PID namespace
	nested   bool   // its PID namespace is not ours
}

// parseStatus reads /proc/PID/status (proc_pid_status(5)).
func parseStatus(text []byte) (status, error) {
	var s status
	need := map[string]func(fields []string) bool{
		"Uid": func(f []string) bool { return len(f) == 4 && number(f[1], 10, &s.uid) },
		"Gid": func(f []string) bool { return len(f) == 4 && number(f[1], 10, &s.gid) },
		"NSpid": func(f []string) bool {
			s.nested = len(f) > 1
			return len(f) > 0 && number(f[len(f)-1], 10, &s.inner)
		},
		"SigCgt": func(f []string) bool {
			var err error
			if len(f) == 1 {
				s.caught, err = strconv.ParseUint(f[0], 16, 64)
			}
			return len(f) == 1 && err == nil
		},
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		read, ok := need[name]
		if !ok {
			continue
		}
		if !read(strings.Fields(value)) {
			return s, fmt.Errorf("status: malformed line %.80q", line)
		}
		delete(need, name)
	}
	for name := range need {
		return s, fmt.Errorf("status: no line %s", name)
	}
	return s, nil
}

func number(text string, base int, to *uint32) bool {
	n, err := strconv.ParseUint(text, base, 32)
	*to = uint32(n)
	return err == nil
}

// status reads that of the process.
func (d *process) status() (status, error) {
	text, err := d.read("status", maxSmall)
	if err != nil {
		return status{}, err
	}
	return parseStatus(text)
}
