package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Limits on what is read.
const (
	// maxLineBytes bounds one entry; the longest is the start of a transaction, some 300 bytes per setting.
	maxLineBytes = 16 << 20
	// maxFileBytes bounds the journal; compaction keeps it far below.
	maxFileBytes = 256 << 20
)

// fileName is the journal inside the state directory.
const fileName = "journal.jsonl"

// File is the path of the journal in a state directory.
func File(stateDir string) string { return filepath.Join(stateDir, fileName) }

// Load reads the journal of a state directory without a lock: what a writer has half written is left out. A directory
// or file that does not exist is an empty journal.
func Load(stateDir string) (*State, error) {
	data, err := read(stateDir)
	if err != nil {
		return nil, err
	}
	return Parse(data), nil
}

func read(stateDir string) ([]byte, error) {
	f, err := openRegular(File(stateDir), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", f.Name(), err)
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("journal %s: larger than %d bytes; move it away, or use another --state-dir", f.Name(), maxFileBytes)
	}
	return data, nil
}

// Parse reads the bytes of a journal. It never fails: damaged lines are counted and passed over. The torn tail is what
// follows the last newline, if a writer that died may have left it; else that is a damaged line as well.
func Parse(data []byte) *State {
	s := newState()
	var at int64
	for rest := data; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			if !torn(rest) {
				s.unterminated = true
				s.Damaged++
				s.damagedBytes += int64(len(rest))
				s.good = int64(len(data))
			}
			break
		}
		text := rest[:end]
		rest = rest[end+1:]
		at += int64(end) + 1
		s.good = at
		r, err := decode(text)
		if err != nil || s.repeats(r) {
			s.Damaged++
			s.damagedBytes += int64(end) + 1
			continue
		}
		s.raw = append(s.raw, data[at-int64(end)-1:at])
		s.fold(r, len(s.raw)-1)
	}
	s.TornBytes = int64(len(data)) - s.good
	return s
}
