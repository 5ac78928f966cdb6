package boot

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"sync"
)

// tail keeps the last bytes written to it.
type tail struct {
	mu    sync.Mutex
	limit int
	kept  []byte
	also  io.Writer
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.limit {
		t.kept = append([]byte(nil), t.kept[len(t.kept)-t.limit:]...)
	}
	if t.also != nil {
		_, _ = t.also.Write(p)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept[max(0, len(t.kept)-t.limit):])
}

// receiver writes the guest's files below dir. Names come from the guest: os.Root keeps them inside.
type receiver struct {
	dir  string
	root *os.Root
	file *os.File
}

func (r *receiver) begin(name string) error {
	if r.dir == "" {
		return nil
	}
	if r.root == nil {
		if err := os.MkdirAll(r.dir, 0o755); err != nil {
			return err
		}
		root, err := os.OpenRoot(r.dir)
		if err != nil {
			return err
		}
		r.root = root
	}
	if err := r.closeFile(); err != nil {
		return err
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("the guest sent a file named %q: outside the output folder", name)
	}
	if err := r.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := r.root.Create(name)
	if err != nil {
		return err
	}
	r.file = file
	return nil
}

func (r *receiver) data(p []byte) error {
	if r.file == nil {
		return nil
	}
	_, err := r.file.Write(p)
	return err
}

func (r *receiver) closeFile() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

func (r *receiver) close() error {
	err := r.closeFile()
	if r.root != nil {
		r.root.Close()
	}
	return err
}
