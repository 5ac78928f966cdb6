package identify

import (
	"bytes"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

const (
	maxBuildInfo = 16 << 20 // bytes read of an executable to find what built it
	maxScan      = 64 << 20 // bytes of an executable that are searched
	scanStep     = 1 << 20
)

// held are texts that a library leaves in the programs it is linked into, stripped ones too.
var held = map[string]string{
	"rayon": "/rayon-core-", // source paths in panic messages: .../rayon-core-1.12.1/src/registry.rs
}

// inside looks into the executable: which Go built it, or what is linked into it.
func (d *process) inside(p *threadpool.Process) error {
	f, err := d.open("exe", unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.Go = goVersion(f); p.Go != "" {
		return nil
	}
	if p.Holds, err = holds(f); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// errBudget ends a reader that was asked for too much.
var errBudget = errors.New("more was read than is needed")

// budget reads at most so many bytes in all.
type budget struct {
	r    io.ReaderAt
	left int64
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errBudget
	}
	return b.r.ReadAt(p, off)
}

// goVersion is the version of Go that built an executable, "" if none did. The standard library's reader is not made for
// hostile files: what it may read is bounded, and should it panic, then the file is none of Go's.
func goVersion(r io.ReaderAt) (version string) {
	defer func() {
		if recover() != nil {
			version = ""
		}
	}()
	info, err := buildinfo.Read(&budget{r, maxBuildInfo})
	if err != nil {
		return ""
	}
	return info.GoVersion
}

// holds searches an executable for what libraries leave in it.
func holds(r io.Reader) ([]string, error) {
	var found []string
	r = io.LimitReader(r, maxScan)
	overlap := 0
	for _, text := range held {
		overlap = max(overlap, len(text)-1)
	}
	buf := make([]byte, 0, scanStep+overlap)
	for len(found) < len(held) {
		n, err := io.ReadFull(r, buf[len(buf):len(buf)+scanStep])
		buf = buf[:len(buf)+n]
		for name, text := range held {
			if !slices.Contains(found, name) && bytes.Contains(buf, []byte(text)) {
				found = append(found, name)
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		keep := copy(buf, buf[len(buf)-min(overlap, len(buf)):])
		buf = buf[:keep]
	}
	return found, nil
}
