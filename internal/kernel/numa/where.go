package numa

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// mapping is one line of numa_maps with anonymous memory.
type mapping struct {
	start uint64
	// size is that of a page in bytes.
	size uint64
	// pages by node.
	pages map[int]uint64
}

// Bounds on the files of a process.
const (
	maxMappings = 1 << 17
	maxNodes    = 1024
)

// Where counts the bytes of anonymous memory of a process on each NUMA node.
func Where(pid int) (map[int]uint64, error) {
	all, err := mappings(pid)
	if err != nil {
		return nil, err
	}
	bytes := map[int]uint64{}
	for _, m := range all {
		for node, n := range m.pages {
			bytes[node] += n * m.size
		}
	}
	return bytes, nil
}

// Remote returns the share of the bytes that is on other nodes, 0 to 1. Without any bytes there is none: ok is false.
func Remote(bytes map[int]uint64, nodes []int) (share float64, ok bool) {
	var all, there uint64
	for _, n := range bytes {
		all += n
	}
	for _, node := range nodes {
		there += bytes[node]
	}
	if all == 0 {
		return 0, false
	}
	return float64(all-there) / float64(all), true
}

func mappings(pid int) ([]mapping, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/numa_maps", pid))
	if err != nil {
		return nil, fmt.Errorf("cannot determine where the memory of process %d is: %w", pid, err)
	}
	defer f.Close()
	return parseMappings(f)
}

// parseMappings reads numa_maps: "7f00 default anon=12 dirty=12 N0=8 N1=4 kernelpagesize_kB=4". It skips lines without
// anonymous pages.
func parseMappings(r io.Reader) ([]mapping, error) {
	var all []mapping
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 4096), 1<<20)
	for lines.Scan() {
		m, ok := parseMapping(lines.Text())
		if !ok {
			continue
		}
		if all = append(all, m); len(all) > maxMappings {
			return nil, fmt.Errorf("more than %d mappings", maxMappings)
		}
	}
	return all, lines.Err()
}

func parseMapping(line string) (m mapping, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return m, false
	}
	start, err := strconv.ParseUint(fields[0], 16, 64)
	if err != nil {
		return m, false
	}
	m = mapping{start: start, size: 4096, pages: map[int]uint64{}}
	for _, field := range fields[2:] {
		name, value, found := strings.Cut(field, "=")
		n, err := strconv.ParseUint(value, 10, 40)
		if !found || err != nil {
			continue
		}
		switch {
		case name == "anon":
			ok = n > 0
		case name == "kernelpagesize_kB" && n > 0 && n <= 16<<20:
			m.size = n << 10
		case strings.HasPrefix(name, "N"):
			if node, err := strconv.ParseUint(name[1:], 10, 16); err == nil && node < maxNodes {
				m.pages[int(node)] = n
			}
		}
	}
	return m, ok && len(m.pages) > 0
}

// ends returns the ends of a process's mappings by their starts.
func ends(pid int) (map[uint64]uint64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[uint64]uint64{}
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 0, 4096), 1<<20)
	for lines.Scan() {
		span, _, _ := strings.Cut(lines.Text(), " ")
		from, to, _ := strings.Cut(span, "-")
		start, err := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if errors.Join(err, err2) == nil && len(all) < maxMappings {
			all[start] = end
		}
	}
	return all, lines.Err()
}
