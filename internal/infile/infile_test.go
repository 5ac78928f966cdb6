package infile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/sys/unix"
)

func fifo(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A pipe without a writer, and one whose writer says nothing, end with the context.
func TestAReadEndsWithItsContext(t *testing.T) {
	silent := fifo(t)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	for name, read := range map[string]func(context.Context) error{
		"no writer": func(ctx context.Context) error { _, err := ReadAll(ctx, fifo(t), nil, 10); return err },
		"a silent writer": func(ctx context.Context) error {
			w, err := os.OpenFile(silent, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			_, err = ReadAll(ctx, silent, nil, 10)
			return err
		},
		"standard input": func(ctx context.Context) error { _, err := ReadAll(ctx, "-", in, 10); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		began, ended := make(chan struct{}), make(chan error, 1)
		go func() { close(began); ended <- read(ctx) }()
		<-began
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := in.Stat(); err != nil {
		t.Errorf("standard input was closed: %v", err)
	}
}

// A writer that comes late is waited for, and all that it writes is read.
func TestALateWriterIsRead(t *testing.T) {
	name := fifo(t)
	f, err := Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	go func() {
		w, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer w.Close()
		for range 3 {
			_, _ = io.WriteString(w, strings.Repeat("x", 100_000))
		}
	}()
	if all, err := io.ReadAll(f); err != nil || len(all) != 300_000 {
		t.Errorf("%d bytes, %v", len(all), err)
	}
}

func TestReadAll(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64]string{20: "0123456789", 10: "0123456789", 3: "0123"} {
		if got, err := ReadAll(t.Context(), name, nil, most); err != nil || string(got) != want {
			t.Errorf("at most %d: %q, %v", most, got, err)
		}
	}
	if got, err := ReadAll(t.Context(), "-", strings.NewReader("abc"), 10); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ReadAll(t.Context(), name+"\x1b", nil, 10); !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasSuffix(err.Error(), `a\x1b: no such file`) {
		t.Errorf("missing: %v", err)
	}
	if _, err := ReadAll(t.Context(), filepath.Dir(name), nil, 10); err == nil || !strings.Contains(err.Error(), "a folder: give a file") {
		t.Errorf("a folder: %v", err)
	}
}

// A command that reads no standard input may be given "-" all the same: a file of that name is read, and none is an error.
func TestReadAllWithoutStandardInput(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := ReadAll(t.Context(), "-", nil, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no such file: %v", err)
	}
	if err := os.WriteFile("-", []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadAll(t.Context(), "-", nil, 10); err != nil || string(got) != "abc" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestCloseEndsTheWatchOfItsContext(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed again: %v", err)
	}
}

func TestRootNeverWaits(t *testing.T) {
	name := fifo(t)
	dir := filepath.Dir(name)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("pipe", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "link"} {
		if _, err := fs.ReadFile(Root(dir), name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(Root(dir), "file"); err != nil {
		t.Error(err)
	}
}
