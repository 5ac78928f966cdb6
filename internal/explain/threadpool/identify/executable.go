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
	maxBuildInfo = 16 << 20 // bytes of an executable to read for its build information
	maxScan      = 64 << 20 // bytes of an executable to search
	scanStep     = 1 << 20
)

// held maps libraries to texts that they leave in the programs they are linked into, also in stripped ones.
var held = map[string]string{
	"rust":  "/library/std/src/", // of its standard library: /rustc/HASH/library/std/src/...
	"rayon": "/rayon-core-",      // source paths in panic messages: .../rayon-core-1.12.1/src/registry.rs
}

// scanExecutable searches the executable for the Go version that built it, or the libraries linked into it.
func (d *process) scanExecutable(p *threadpool.Process) error {
	f, err := d.open("exe", unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer f.Close()
	if p.Go, p.GoDebug = goBuild(f); p.Go != "" {
		return nil
	}
	if p.Holds, err = holds(f); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// errBudget ends a reader that exceeds its budget.
var errBudget = errors.New("more bytes were read than needed")

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

// goBuild returns the version of Go that built an executable, or "" if none did, and the defaults of GODEBUG in it. The standard library's
// reader is not made for hostile files. Its reads are bounded, and if it panics, the file is no Go program.
func goBuild(r io.ReaderAt) (version, debug string) {
	defer func() {
		if recover() != nil {
			version, debug = "", ""
		}
	}()
	info, err := buildinfo.Read(&budget{r, maxBuildInfo})
	if err != nil {
		return "", ""
	}
	for _, s := range info.Settings {
		if s.Key == "DefaultGODEBUG" {
			debug = s.Value
		}
	}
	return info.GoVersion, debug
}

// holds searches an executable for the texts of held.
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
