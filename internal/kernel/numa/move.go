package numa

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of one call.
const (
	// MaxCall is how long one call may take; it then moves fewer pages.
	MaxCall = 20 * time.Millisecond
	// Least and Most are how many pages one call moves.
	Least, Most = 64, 1280
	// MaxMapping is the size of a mapping, in bytes, from which on it is left.
	MaxMapping = 64 << 30
)

// moveExclusive is MPOL_MF_MOVE: only pages that this process alone maps.
const moveExclusive = 1 << 1

// Result is what came of a move.
type Result struct {
	// Moved and Left count pages: those moved, and those that the kernel left.
	Moved, Left int
	// Calls were made, the longest of Longest.
	Calls   int
	Longest time.Duration
	// Large counts mappings that were too large to look at.
	Large int
}

// Move moves the anonymous memory of a process to the nodes. A process that ends
// meanwhile is no error.
func Move(ctx context.Context, pid int, nodes []int) (Result, error) {
	var r Result
	if len(nodes) == 0 {
		return r, errors.New("no NUMA node to move memory to")
	}
	all, err := mappings(pid)
	if err != nil {
		return r, err
	}
	end, err := ends(pid)
	if err != nil {
		return r, err
	}
	m := mover{pid: pid, nodes: nodes, batch: Least, res: &r}
	for _, at := range all {
		remote := false
		for node, n := range at.pages {
			remote = remote || n > 0 && !slices.Contains(nodes, node)
		}
		to, known := end[at.start]
		switch {
		case !remote || !known:
			continue
		case to-at.start > MaxMapping:
			r.Large++
			continue
		}
		if err := m.mapping(ctx, at.start, to, at.size); err != nil {
			if errors.Is(err, unix.ESRCH) {
				return r, nil
			}
			return r, err
		}
	}
	return r, nil
}

type mover struct {
	pid   int
	nodes []int
	batch int
	res   *Result
	next  int // which node gets the next batch
}

// mapping moves the remote pages of one mapping.
func (m *mover) mapping(ctx context.Context, start, end, size uint64) error {
	var waiting []uintptr
	for at := start; at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		asked := make([]uintptr, 0, Most)
		for ; at < end && len(asked) < Most; at += size {
			asked = append(asked, uintptr(at))
		}
		status, err := m.call(asked, nil)
		if err != nil {
			return err
		}
		for i, node := range status {
			if node >= 0 && !slices.Contains(m.nodes, int(node)) {
				waiting = append(waiting, asked[i])
			}
		}
		for len(waiting) >= m.batch {
			n := m.batch
			if err := m.move(ctx, waiting[:n]); err != nil {
				return err
			}
			waiting = waiting[n:]
		}
	}
	for len(waiting) > 0 {
		n := min(m.batch, len(waiting))
		if err := m.move(ctx, waiting[:n]); err != nil {
			return err
		}
		waiting = waiting[n:]
	}
	return nil
}

// move moves some pages in one call, and learns from how long that took.
func (m *mover) move(ctx context.Context, pages []uintptr) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	to := make([]int32, len(pages))
	for i := range to {
		to[i] = int32(m.nodes[m.next%len(m.nodes)])
	}
	m.next++
	start := time.Now()
	status, err := m.call(pages, to)
	took := time.Since(start)
	if err != nil {
		return err
	}
	m.res.Calls++
	m.res.Longest = max(m.res.Longest, took)
	for i, s := range status {
		if s == to[i] {
			m.res.Moved++
		} else {
			m.res.Left++
		}
	}
	switch {
	case took > MaxCall:
		m.batch = max(Least, m.batch/2)
	case took < MaxCall/2:
		m.batch = min(Most, 2*m.batch)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(took, MaxCall)):
		return nil
	}
}

// call is move_pages(2); without nodes it asks where the pages are.
func (m *mover) call(pages []uintptr, nodes []int32) ([]int32, error) {
	status := make([]int32, len(pages))
	if len(pages) == 0 {
		return status, nil
	}
	var to unsafe.Pointer
	flags := uintptr(0)
	if nodes != nil {
		to, flags = unsafe.Pointer(&nodes[0]), moveExclusive
	}
	_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, uintptr(m.pid), uintptr(len(pages)), uintptr(unsafe.Pointer(&pages[0])),
		uintptr(to), uintptr(unsafe.Pointer(&status[0])), flags)
	// ENOENT: every page was there already, or is gone (before 4.17).
	if errno != 0 && errno != unix.ENOENT {
		return nil, fmt.Errorf("moving pages of process %d: %w", m.pid, errno)
	}
	return status, nil
}
