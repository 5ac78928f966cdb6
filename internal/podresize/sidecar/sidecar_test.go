package sidecar

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A socket that is not there says nothing of a pod: only an answer says that one is gone.
func TestNobodyListens(t *testing.T) {
	c := New(filepath.Join(t.TempDir(), "resize.sock"))
	_, err := c.Read(t.Context(), "id")
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "does not answer: dial unix") {
		t.Errorf("%v", err)
	}
}
