package cgroup

import (
	"strconv"
	"strings"
)

// MemoryUse is what a cgroup with its descendants may use of memory, and uses.
type MemoryUse struct {
	// LimitBytes is its own limit; nil: it has none.
	LimitBytes *uint64
	// WorkingBytes is what it uses without the file pages that the kernel reclaims first (inactive_file).
	WorkingBytes uint64
}

// noMemoryLimit is above every limit: v1 shows "none" as the most pages that a counter has (PAGE_COUNTER_MAX,
// include/linux/page_counter.h), which depends on the page size.
const noMemoryLimit = 1 << 60

// ReadMemory reads memory.max, memory.current and memory.stat, or memory.limit_in_bytes, memory.usage_in_bytes and the
// same on v1. The path is
// that of the memory hierarchy.
func ReadMemory(fsys FS, path string) (m MemoryUse, err error) {
	v, ok := fsys.Version(Memory)
	if !ok {
		return m, NewError(fsys, Memory, Error{Op: OpRead, Path: path, Kind: ErrNoController})
	}
	limit, used, inactive := fileMemoryMax, fileMemoryCurrent, "inactive_file "
	if v == V1 {
		limit, used, inactive = fileMemoryLimitV1, fileMemoryUsageV1, "total_inactive_file "
	}
	number := func(file, text string) (n uint64) {
		if err != nil {
			return 0
		}
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			err = badFile(fsys, Memory, path, file, err)
		}
		return n
	}
	read := func(file string) (text string) {
		if err == nil {
			text, err = fsys.Read(Memory, path, file)
		}
		return text
	}
	most := read(limit)
	if most != "max" {
		if n := number(limit, most); n < noMemoryLimit {
			m.LimitBytes = &n
		}
	}
	m.WorkingBytes = number(used, read(used))
	for line := range strings.Lines(read(fileMemoryStat)) {
		if text, found := strings.CutPrefix(line, inactive); found {
			m.WorkingBytes -= min(m.WorkingBytes, number(fileMemoryStat, strings.TrimSpace(text)))
		}
	}
	if err != nil {
		return MemoryUse{}, err
	}
	return m, nil
}

const (
	fileMemoryMax     = "memory.max"
	fileMemoryCurrent = "memory.current"
	fileMemoryStat    = "memory.stat"
	fileMemoryLimitV1 = "memory.limit_in_bytes"
	fileMemoryUsageV1 = "memory.usage_in_bytes"
)
