package budget

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// fileVariable names the variable that asks for a file with what the budget has in force. Without it nothing is written.
const fileVariable = "UNTHROTTLE_BUDGET_FILE"

// file tells tools outside of the process what is in force: see [fileVariable]. It is written when that changes.
type file struct {
	path    string // "": nothing is written
	process string // number and start time, so that a reader knows a file that an earlier process left
	written []byte
}

// newFile reads which process this is. The error says that nothing is written, and why.
func newFile(path string) (file, error) {
	if path == "" {
		return file{}, nil
	}
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return file{}, fmt.Errorf("budget: %s=%s: %w; it is not written", fileVariable, path, err)
	}
	process, err := processOf(string(stat))
	if err != nil {
		return file{}, fmt.Errorf("budget: %s=%s: %w; it is not written", fileVariable, path, err)
	}
	return file{path: path, process: process}, nil
}

// processOf is number and start time, in ticks since the boot, of proc_pid_stat(5).
func processOf(stat string) (string, error) {
	number, _, _ := strings.Cut(stat, " ")
	at := strings.LastIndexByte(stat, ')') // the program's name may have blanks and brackets
	fields := strings.Fields(stat[at+1:])
	const start = 22 - 3 // starttime is the 22nd field, and the first one after the name is the third
	if _, err := strconv.Atoi(number); err != nil || at < 0 || len(fields) <= start {
		return "", errors.New("/proc/self/stat is malformed")
	}
	return number + " " + fields[start], nil
}

// text is what the file says of a snapshot.
func (f *file) text(s Snapshot) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "unthrottle-budget 1\nprocess %s\n", f.process)
	if s.LimitCPUs != nil {
		fmt.Fprintf(&b, "limit_cpus %s\n", strconv.FormatFloat(*s.LimitCPUs, 'f', -1, 64))
	}
	fmt.Fprintf(&b, "paced %t\n", s.Paced)
	if s.GOMAXPROCS > 0 {
		fmt.Fprintf(&b, "gomaxprocs %d\n", s.GOMAXPROCS)
	}
	for _, c := range Classes {
		fmt.Fprintf(&b, "permits %s %d\n", c, s.Classes[c].Permits)
	}
	return b.Bytes()
}

// write replaces the file if something changed. A reader sees the old or the new one, never a part.
func (f *file) write(s Snapshot) error {
	text := f.text(s)
	if bytes.Equal(text, f.written) {
		return nil
	}
	fresh := f.path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("budget: %s: %w", fileVariable, err)
	}
	// O_EXCL: nothing is written through a link that another user made.
	to, err := os.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return fmt.Errorf("budget: %s: %w", fileVariable, err)
	}
	_, err = to.Write(text)
	if err := errors.Join(err, to.Close()); err != nil {
		return fmt.Errorf("budget: %s: %w", fileVariable, err)
	}
	if err := os.Rename(fresh, f.path); err != nil {
		return fmt.Errorf("budget: %s: %w", fileVariable, err)
	}
	f.written = text
	return nil
}
