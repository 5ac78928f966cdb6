package study

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// Made says when, where and by which version a piece was measured.
type Made struct {
	At time.Time `json:"at"`
	// Machine is [Machine]'s text; "": it is not known.
	Machine string `json:"machine,omitempty"`
	// Commit is the version of the program that was tried; "": it was not asked.
	Commit string `json:"commit,omitempty"`
}

// Now is of a piece that this program measures on this machine at a time.
func Now(at time.Time) Made {
	m := Made{At: at.UTC().Truncate(time.Second), Machine: Machine()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				m.Commit = s.Value[:min(8, len(s.Value))]
			}
		}
	}
	return m
}

// Day is the date of the piece.
func (m Made) Day() string { return m.At.Format(time.DateOnly) }

// maxLine bounds a line of a file of pieces, in bytes.
const maxLine = 1 << 20

// Lines are pieces kept in a file, one JSON value a line; compressed where the file's name ends with ".gz", as those that the tree keeps.
type Lines[T any] struct {
	File string
	// All are the pieces in the order in which they came.
	All []T
	// read has each line as it was read, by what the program makes of it: what an older version kept and this one does not know stays
	// with a piece that does not change.
	read map[string][]byte
}

// ReadLines reads the pieces of a file; none without it.
func ReadLines[T any](file string) (*Lines[T], error) {
	l := &Lines[T]{File: file}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if compressed(file) {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, fmt.Errorf("%s: %w; remove it to begin anew", file, err)
		}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w; remove the line, and the piece is measured again", file, n, err)
		}
		l.All = append(l.All, one)
		known, err := json.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, n, err)
		}
		if l.read == nil {
			l.read = map[string][]byte{}
		}
		l.read[string(known)] = bytes.Clone(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s, after %d lines: %w; remove it to begin anew", file, len(l.All), err)
	}
	return l, nil
}

func compressed(file string) bool { return filepath.Ext(file) == ".gz" }

// Write writes all pieces into the file, whole or not at all, and makes its folder.
func (l *Lines[T]) Write() error {
	var out bytes.Buffer
	var to io.Writer = &out
	zip := gzip.NewWriter(&out)
	if compressed(l.File) {
		to = zip
	}
	for _, one := range l.All {
		text, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("a piece for %s: %w", l.File, err)
		}
		if was, ok := l.read[string(text)]; ok {
			text = was
		}
		if _, err := to.Write(append(text, '\n')); err != nil {
			return fmt.Errorf("%s: %w", l.File, err)
		}
	}
	if compressed(l.File) {
		if err := zip.Close(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(l.File), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(l.File, out.Bytes(), 0o644)
}

// Add keeps a piece, in the file too, whose folder it makes. A compressed file is written anew.
func (l *Lines[T]) Add(one T) error {
	if compressed(l.File) {
		l.All = append(l.All, one)
		return l.Write()
	}
	text, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("a piece for %s: %w", l.File, err)
	}
	if err := os.MkdirAll(filepath.Dir(l.File), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(l.File, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	l.All = append(l.All, one)
	return nil
}

// Read reads a piece from a file of its own; false: there is no such file.
func Read(name string, into any) (bool, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("%s: %w; remove it, and it is measured again", name, err)
	}
	return true, nil
}

// Write keeps a piece in a file of its own, whole or not at all, and makes the file's folder.
func Write(name string, piece any) error {
	text, err := json.MarshalIndent(piece, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(name, append(text, '\n'), 0o644)
}

// WriteBetween replaces what a page has between "<!-- MARK -->" and the next "<!-- end -->".
func WriteBetween(name, mark, text string) error {
	begin, end := "<!-- "+mark+" -->\n", "<!-- end -->"
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(page), begin)
	_, after, has := strings.Cut(rest, end)
	if !ok || !has {
		return fmt.Errorf("%s: it has no %q with %q behind", name, strings.TrimSpace(begin), end)
	}
	return WritePage(name, before+begin+text+end+after)
}

// WritePage writes a page, whole or not at all.
func WritePage(name, text string) error { return renameio.WriteFile(name, []byte(text), 0o644) }
