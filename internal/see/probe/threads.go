package probe

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/cilium/ebpf/link"
)

// lookAtThreads runs the iterator over all threads. It records which want a CPU, and passes a row for each thread of
// the recorded container.
func (p *Probe) lookAtThreads(row func(*bpfThreadRow)) error {
	program := p.coll.Programs[bpfProgLookAtThreads]
	if program == nil {
		return nil
	}
	it, err := link.AttachIter(link.IterOptions{Program: program})
	if err != nil {
		return refused("look through all threads", err)
	}
	defer it.Close()
	rows, err := it.Open()
	if err != nil {
		return refused("look through all threads", err)
	}
	defer rows.Close()
	const size = int(unsafe.Sizeof(bpfThreadRow{}))
	buf := make([]byte, 64*size)
	kept := 0
	for {
		n, err := rows.Read(buf[kept:])
		kept += n
		at := 0
		for ; kept-at >= size; at += size {
			if row != nil {
				r := *(*bpfThreadRow)(unsafe.Pointer(&buf[at]))
				row(&r)
			}
		}
		kept = copy(buf, buf[at:kept])
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("look through all threads: %w", err)
		}
	}
}
