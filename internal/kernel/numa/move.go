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
	// maxCall is how long one call may take; after a longer one the next moves fewer pages.
	maxCall = 20 * time.Millisecond
	// least and most bound how many pages one call moves.
	least, most = 64, 1280
	// maxMapping is the largest size of a mapping, in bytes, that Move handles.
	maxMapping = 64 << 30
)

// moveExclusive is MPOL_MF_MOVE: only pages that this process alone maps.
const moveExclusive = 1 << 1

// Result counts the work of a Move.
type Result struct {
	// Moved counts moved pages; Left counts pages that the kernel did not move.
	Moved, Left int
	// Calls is the number of calls, Longest the duration of the longest.
	Calls   int
	Longest time.Duration
	// Large counts mappings that were too large.
	Large int
}

// Move moves the anonymous memory of a process to the nodes. If the process ends meanwhile, that is no error.
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
	m := mover{pid: pid, nodes: nodes, batch: least, res: &r}
	for _, at := range all {
		remote := false
		for node, n := range at.pages {
			remote = remote || n > 0 && !slices.Contains(nodes, node)
		}
		to, known := end[at.start]
		switch {
		case !remote || !known:
			continue
		case to-at.start > maxMapping:
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
	next  int // index of the node for the next batch
}

// mapping moves the remote pages of one mapping.
func (m *mover) mapping(ctx context.Context, start, end, size uint64) error {
	var waiting []uintptr
	for at := start; at < end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		asked := make([]uintptr, 0, most)
		for ; at < end && len(asked) < most; at += size {
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

// move moves some pages in one call, and adapts the batch size to its duration.
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
	case took > maxCall:
		m.batch = max(least, m.batch/2)
	case took < maxCall/2:
		m.batch = min(most, 2*m.batch)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(min(took, maxCall)):
		return nil
	}
}

// call calls move_pages(2); without nodes it asks where the pages are.
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
	// ENOENT means that every page was there already, or is gone (before 4.17).
	if errno != 0 && errno != unix.ENOENT {
		return nil, fmt.Errorf("moving pages of process %d: %w", m.pid, errno)
	}
	return status, nil
}
