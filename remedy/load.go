package remedy

import (
	"io"
	"io/fs"
	"strconv"
	"strings"
)

// ticks are a CPU's clock ticks since boot.
type ticks struct{ busy, all uint64 }

// maxStat bounds what is read of /proc/stat: the lines of the CPUs come first.
const maxStat = 4 << 20

// readTicks reads /proc/stat; nil where it cannot be read.
func readTicks(root fs.FS) map[int]ticks {
	file, err := root.Open("proc/stat")
	if err != nil {
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxStat))
	if err != nil {
		return nil
	}
	return parseTicks(string(text))
}

// parseTicks reads the lines "cpuN user nice system idle iowait irq softirq
// steal ..." (proc_stat(5)). What comes after steal is in user and nice already.
// Lines that are not like that are passed over.
func parseTicks(text string) map[int]ticks {
	all := map[int]ticks{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(fields[0], "cpu") {
			continue
		}
		id, err := strconv.ParseUint(fields[0][len("cpu"):], 10, 16)
		if err != nil {
			continue
		}
		var t ticks
		for i, field := range fields[1:min(len(fields), 9)] {
			n, err := strconv.ParseUint(field, 10, 62)
			if err != nil {
				break
			}
			t.all += n
			if i != 3 && i != 4 { // idle, iowait
				t.busy += n
			}
		}
		all[int(id)] = t
	}
	return all
}

// loads is the busy share of each CPU between two readings; nil where none can
// be told: a clock of ticks that did not go on, or went back.
func loads(before, after map[int]ticks) map[int]float64 {
	var all map[int]float64
	for id, now := range after {
		was, ok := before[id]
		if !ok || now.all <= was.all || now.busy < was.busy || now.all-was.all < now.busy-was.busy {
			continue
		}
		if all == nil {
			all = map[int]float64{}
		}
		all[id] = float64(now.busy-was.busy) / float64(now.all-was.all)
	}
	return all
}
