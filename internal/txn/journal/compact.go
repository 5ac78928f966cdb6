package journal

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
)

// Bounds on what stays.
const (
	// minGarbage is how much there must be to drop before the journal is written again, so that the work is in
	// proportion to what was appended.
	minGarbage = 64 << 10
	// maxHistory bounds the bytes of closed transactions that are kept, beside their number.
	maxHistory = 2 << 20
)

// Compact writes the journal again without its garbage, if most of it is garbage. It keeps the lines of open transactions,
// the last writes to their settings, and the beginning, end and outcome of the latest closed transactions. It replaces the
// file as a whole: after a crash the old or the new file is there. It copies lines byte for byte, with fields that this
// version does not know.
func (j *Journal) Compact() error {
	if j.state.Damaged > 0 {
		// They could not be kept aside, and are not cut away.
		return nil
	}
	keep, size := j.state.keep(j.opts.Keep)
	if garbage := j.state.good - size; garbage < minGarbage || garbage < size {
		return nil
	}
	return j.rewrite(keep)
}

// keep lists the lines that stay, in order, and their length.
func (s *State) keep(closed int) (lines []int, size int64) {
	wanted := map[int]bool{}
	for _, n := range s.always {
		wanted[n] = true
	}
	for _, d := range s.damage {
		wanted[d.line] = true
	}
	for _, t := range s.Open() {
		for _, n := range t.allLines() {
			wanted[n] = true
		}
		for _, h := range t.Holds {
			if l := s.last[h.Setting]; l != nil {
				for _, n := range l.lines {
					wanted[n] = true
				}
			}
		}
	}
	var history int64
	for i := len(s.Txns) - 1; i >= 0; i-- {
		t := s.Txns[i]
		if t.Phase != Closed {
			continue
		}
		for _, n := range t.allLines() {
			history += int64(len(s.raw[n]))
		}
		if (closed <= 0 || history > maxHistory) && !s.tookFromOpen(t) {
			continue
		}
		closed--
		for _, n := range t.allLines() {
			wanted[n] = true
		}
	}
	for n := range wanted {
		lines = append(lines, n)
		size += int64(len(s.raw[n]))
	}
	slices.Sort(lines)
	return lines, size
}

// tookFromOpen tells whether a transaction made a hold of an open one void: without it the hold would count again.
func (s *State) tookFromOpen(t *Txn) bool {
	for _, k := range t.took {
		for _, other := range s.Open() {
			if other.lost[k] {
				return true
			}
		}
	}
	return false
}

// rewrite replaces the file by the given lines, and records after them. A header that was lost is made anew.
func (j *Journal) rewrite(keep []int, more ...Record) error {
	var buffer bytes.Buffer
	if j.state.Version == 0 {
		header, err := encode(j.header())
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		buffer.Write(header)
	}
	for _, n := range keep {
		buffer.Write(j.state.raw[n])
	}
	for _, r := range more {
		text, err := encode(r)
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		buffer.Write(text)
	}
	name := File(j.dir)
	f, err := renameio.NewPendingFile(name, renameio.WithTempDir(j.dir), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return fmt.Errorf("journal %s: %w", name, err)
	}
	defer func() { _ = f.Cleanup() }()
	if _, err := f.Write(buffer.Bytes()); err != nil {
		return fmt.Errorf("journal %s: %w", name, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("journal %s: %w", name, err)
	}
	// From here on the old file has no name: whatever fails below, it must not be written.
	next := j.state.next
	old := j.h
	if err := j.openFile(); err != nil {
		j.dead = err
		return err
	}
	_ = old.Close()
	j.state = Parse(buffer.Bytes())
	j.state.next = max(j.state.next, next)
	j.size = j.state.good
	// The old file's reserve went with it; the rollback of the transactions in force needs room again.
	_ = j.Reserve(0)
	j.unsettled = true
	return j.settle()
}

// undoing is how many bytes it takes to take back all that is in force; 0: nothing is.
func (j *Journal) undoing() (bytes int64) {
	for _, t := range j.state.Open() {
		for _, n := range t.allLines() {
			bytes += 4 * int64(len(j.state.raw[n]))
		}
	}
	if bytes > 0 {
		bytes += minGarbage
	}
	return bytes
}

// settle forces the new file's name to the disk: until then a crash may bring back the old file, without what was appended since.
func (j *Journal) settle() error {
	if !j.unsettled {
		return nil
	}
	if err := syncDir(j.dir); err != nil {
		return fmt.Errorf("journal %s: its new file's name is not on the disk: %w", File(j.dir), wayOut(err))
	}
	j.unsettled = false
	return nil
}

// removeLeftovers removes what a writer that died while compacting left behind. The lock is ours.
func (j *Journal) removeLeftovers() {
	left, _ := filepath.Glob(filepath.Join(escapeGlob(j.dir), "."+fileName+"*"))
	for _, name := range left {
		_ = os.Remove(name)
	}
}
