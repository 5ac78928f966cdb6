package procfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// ReadMemTotal reads the MemTotal of a proc file system's meminfo, in bytes: what the kernel manages of the machine's memory
// (proc_meminfo(5)).
func ReadMemTotal(proc fs.FS) (bytes int64, err error) {
	file, err := proc.Open("meminfo")
	if err != nil {
		return 0, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxText))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil || kib <= 0 || kib > 1<<50 {
				return 0, fmt.Errorf("/proc/meminfo: MemTotal %.40q is no size", value)
			}
			return kib << 10, nil
		}
	}
	return 0, errors.New("/proc/meminfo has no MemTotal")
}
