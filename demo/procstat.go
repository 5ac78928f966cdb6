package demo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/unthrottle/unthrottle/topology"
)

// userHZ is the unit of times in /proc, 1/100 s on every architecture that
// this project builds for (USER_HZ, include/uapi/asm-generic/param.h).
const userHZ = 100

// cpuTime is what one CPU has done since boot.
type cpuTime struct {
	cpu          int
	busy, stolen time.Duration
}

// readCPUTimes reads /proc/stat.
func readCPUTimes(procDir string) ([]cpuTime, error) {
	f, err := os.Open(filepath.Join(procDir, "stat"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseCPUTimes(f)
}

// parseCPUTimes reads the "cpuN" lines: user, nice, system, idle, iowait, irq,
// softirq, steal (proc_stat(5)). Guest time is in user already.
func parseCPUTimes(r io.Reader) ([]cpuTime, error) {
	var all []cpuTime
	lines := bufio.NewScanner(io.LimitReader(r, 4<<20))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if !ok {
			break // the CPUs stand first
		}
		if number == "" {
			continue // the sum of all
		}
		cpu, err := strconv.Atoi(number)
		if err != nil || cpu < 0 || cpu >= topology.MaxCPUs || len(all) >= topology.MaxCPUs {
			return nil, fmt.Errorf("/proc/stat: %.40q is no CPU", name)
		}
		t, err := parseTicks(rest)
		if err != nil {
			return nil, fmt.Errorf("/proc/stat: cpu%d: %w", cpu, err)
		}
		t.cpu = cpu
		all = append(all, t)
	}
	return all, lines.Err()
}

func parseTicks(text string) (cpuTime, error) {
	fields := strings.Fields(text)
	if len(fields) < 8 {
		return cpuTime{}, errors.New("fewer than 8 times")
	}
	var ticks [8]time.Duration
	for i := range ticks {
		n, err := strconv.ParseUint(fields[i], 10, 36) // 22 years, and no sum of them overflows
		if err != nil {
			return cpuTime{}, fmt.Errorf("%.40q is no time", fields[i])
		}
		ticks[i] = time.Duration(n)
	}
	const tick = time.Second / userHZ
	busy := ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]
	return cpuTime{busy: busy * tick, stolen: ticks[7] * tick}, nil
}

// spent is the CPU-seconds that all CPUs together were busy, and that a
// hypervisor kept back, between two looks; false where that is not known.
func spent(before, after []cpuTime) (busy, stolen float64, ok bool) {
	if len(before) == 0 || len(before) != len(after) {
		return 0, 0, false
	}
	for i, b := range before {
		a := after[i]
		if a.cpu != b.cpu || a.busy < b.busy || a.stolen < b.stolen {
			return 0, 0, false // a CPU came or went
		}
		busy += (a.busy - b.busy).Seconds()
		stolen += (a.stolen - b.stolen).Seconds()
	}
	return busy, stolen, true
}
